"""A CPU's products: the core's own and ATen's, whichever is this processor's, both are right."""

import os
import subprocess
import sys

import pytest
import torch
from conftest import targets
from helpers import INPUTS, check_against_reference, draw, draw_grads, evaluate
from sequence_helpers import check_sequence, draw_sequence, pack, ragged
from sequence_helpers import evaluate as evaluate_sequence
from test_cli import fails

import lltm_decoupled
from lltm_decoupled import cli, lltm_cell, lltm_sequence

CALL = """
import torch, lltm_decoupled
lltm_decoupled.LLTM(3, 4)(torch.randn(2, 3))
"""

WAYS = ("core", "aten")
SWITCH = "LLTM_CPU_PRODUCTS"
# Few rows, those where packing begins to pay, those where kernels for few rows end.
ROWS = (1, 17, 31, 32, 64, 65, 130)
CPU = targets("cpu")


@pytest.fixture(params=CPU, ids=str)
def cpu(request):
    return request.param


@pytest.mark.parametrize("rows", ROWS)
def test_values_of_a_cell(cpu, rows):
    for input_features, state_size in ((1, 40), (70, 33)):
        inputs = draw(cpu, rows, input_features, state_size)
        check_against_reference(lltm_cell, inputs, cpu)


@pytest.mark.parametrize("recompute", (False, True))
@pytest.mark.parametrize("rows", (3, 20, 70))
def test_values_of_a_sequence(cpu, rows, recompute):
    inputs = draw_sequence(cpu, steps=5, batch_size=rows, input_features=17, state_size=30)
    check_sequence(cpu, inputs, recompute=recompute)
    sizes = ragged(5, rows)
    check_sequence(cpu, pack(inputs, sizes), recompute=recompute, batch_sizes=sizes)
    check_sequence(cpu, [*inputs[:2], None, *inputs[3:]], recompute=recompute, reverse=True)


@pytest.mark.parametrize("rows", (20, 70))
def test_values_of_views(cpu, rows):
    """Transposes, parts of larger tensors, and views that say minus."""
    inputs = draw(cpu, rows, 70, 33)
    grads = draw_grads(inputs)
    expected = evaluate(lltm_cell, inputs, grads)
    for change in (
        lambda t: t.t().contiguous().t() if t.dim() == 2 else t,
        lambda t: (
            torch.cat([t, t])[: t.size(0)] if t.dim() == 1 else torch.cat([t, t], 1)[:, : t.size(1)]
        ),
        lambda t: torch._neg_view(-t),
    ):
        actual = evaluate(lltm_cell, [change(t) for t in inputs], grads)
        for name, tensor in expected.items():
            torch.testing.assert_close(actual[name], tensor, rtol=cpu.rtol, atol=8 * cpu.atol)


@pytest.mark.skipif(os.environ.get(SWITCH) != "core", reason="MKL's bits are its own affair")
@pytest.mark.parametrize("dtype", (torch.float32, torch.float64))
def test_values_have_the_bits_of_one_thread(dtype):
    """However rows or panels are shared out; large enough that they are."""
    (cpu,) = (target for target in CPU if target.dtype == dtype)
    cell = draw(cpu, 600, 100, 90)
    sequence = draw_sequence(cpu, steps=6, batch_size=200, input_features=90, state_size=100)
    grads = draw_grads(cell)
    before, results = torch.get_num_threads(), []
    try:
        for threads in (1, 2, 3):
            torch.set_num_threads(threads)
            results.append(evaluate(lltm_cell, cell, grads))
            results[-1].update(
                ("sequence " + name, value)
                for name, value in evaluate_sequence(lltm_sequence, sequence).items()
            )
    finally:
        torch.set_num_threads(before)
    for other in results[1:]:
        for name, value in other.items():
            assert torch.equal(value, results[0][name]), name


def run(way, *arguments):
    environment = dict(os.environ, **{SWITCH: way}, OMP_NUM_THREADS="1")
    command = [sys.executable, *arguments]
    done = subprocess.run(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False
    )
    return done.returncode, done.stdout.decode()


@pytest.mark.parametrize("way", WAYS)
def test_either_way(way):
    """All of the above once more: a processor takes one way by itself."""
    counts = os.path.join(os.path.dirname(__file__), "test_autograd_work.py")
    files = (__file__, counts) if way == "aten" else (__file__,)
    options = (
        "-q",
        "-p",
        "no:xdist",
        "-p",
        "no:cacheprovider",
        "-k",
        "values or product_ or products_ or an_unused",
    )
    status, output = run(way, "-m", "pytest", *files, *options)
    assert status == 0 and " passed" in output, output


@pytest.mark.skipif(os.environ.get(SWITCH) != "core", reason="ATen's products are ATen's")
@pytest.mark.parametrize("dtype", (torch.float32, torch.float64))
def test_values_are_the_cores_from_32_rows_on(dtype):
    """Whichever gradients are wanted; in the cell, its raw functions and the layer."""
    (cpu,) = (target for target in CPU if target.dtype == dtype)
    for threads, rows in ((1, 32), (1, 200), (2, 70)):
        before = torch.get_num_threads()
        torch.set_num_threads(threads)
        try:
            with torch.autograd.profiler.profile() as profile:
                for wanted in (("input",), ("old_h",), ("input", "old_h", "weights")):
                    inputs = dict(zip(INPUTS, draw(cpu, rows, 40, 50)))
                    for name in wanted:
                        inputs[name].requires_grad_()
                    lltm_cell(**inputs)[0].sum().backward()
                raw = [t.detach() for t in inputs.values()]
                outputs = lltm_decoupled.forward(*raw)
                lltm_decoupled.backward(*outputs[:2], *outputs[1:], raw[1])
                sequence = [t.requires_grad_() for t in draw_sequence(cpu, 4, rows // 4, 40, 50)]
                lltm_sequence(*sequence)[0].sum().backward()
        finally:
            torch.set_num_threads(before)
        names = {event.name for event in profile.function_events}
        assert not names & {"aten::mm", "aten::addmm", "aten::addmm_", "aten::addmm.out"}, rows


def test_another_way_is_refused():
    status, output = run("mkl", "-c", CALL)
    assert status == 1 and f"{SWITCH} must be core or aten, got mkl" in output, output


@pytest.mark.parametrize("name", cli.SWITCHES)
@pytest.mark.parametrize("command", ["check", "demo", "bench"])
def test_a_wrong_switch_in_the_environment(capsys, monkeypatch, command, name):
    monkeypatch.setenv(name, "CORE")
    assert f"{name} must be {' or '.join(cli.SWITCHES[name])}, got CORE" in fails(capsys, command)

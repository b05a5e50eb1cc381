"""Sequences that one launch spreads over the GPU, as PyTorch sees them; else every other path."""

import subprocess
import sys

import pytest
import torch
from conftest import TARGETS, require_device
from helpers import all_equal, assert_close, exact
from sequence_helpers import (
    INPUTS,
    LOSSES,
    assert_errs_at_most_twice,
    assert_same_sequences,
    check_sequence,
    draw_sequence,
    evaluate,
    pack,
    ragged,
)

from lltm_decoupled import lltm_sequence, reference

NAME = "LLTM_SEQUENCE_PATH"
# steps, batch_size, input_features, state_size
SIZES = [(5, 3, 4, 130), (33, 3, 8, 200), (6, 70, 3, 256), (5, 9, 4, 257), (4, 16, 5, 600)]
SIZES += [(6, 40, 3, 1000)]  # in float64 backward alone


@pytest.fixture(params=[t for t in TARGETS if t.device != "cpu"], ids=str)
def gpu_target(request):
    require_device(request.param.device)
    return request.param


def spreads(target):
    return torch.cuda.get_device_capability(target.device)[0] == 9


@pytest.mark.parametrize("options", [{}, {"reverse": True}, {"recompute": True}], ids=str)
@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("sizes", SIZES, ids=str)
def test_values_and_gradients(gpu_target, sizes, packed, options):
    inputs = draw_sequence(gpu_target, *sizes)
    if packed:
        options = dict(options, batch_sizes=ragged(*sizes[:2]))
        inputs = pack(inputs, options["batch_sizes"])
    check_sequence(gpu_target, inputs, **options)


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("state_size", [96, 512])
def test_many_steps_of_packed_data_without_gradients(gpu_target, state_size, reverse):
    """Several launches, in a later one of which rows begin or end."""
    inputs = draw_sequence(gpu_target, 90, 64, 2, state_size)
    batch_sizes = ragged(90, 64)
    inputs = pack(inputs, batch_sizes)
    with torch.no_grad():
        results = lltm_sequence(*inputs, batch_sizes=batch_sizes, reverse=reverse)
    expected = reference.lltm_sequence(*exact(inputs), batch_sizes=batch_sizes, reverse=reverse)
    for actual, value in zip(results, expected):
        assert_close(actual, value, gpu_target, terms=90 * state_size / 100)


@pytest.mark.parametrize("small", [False, True])
@pytest.mark.parametrize(
    "sizes",
    [(64, 20, 16, 200), (24, 16, 16, 512), (16, 64, 8, 1024), (48, 90, 512, 512)],
    ids=str,
)
def test_float32_errs_no_more_than_twice_what_the_plain_loop_does(sizes, small, gpu_target):
    """Where products are made of halves, or of TF32: strict float32 is still what torch's is."""
    if gpu_target.dtype != torch.float32:
        pytest.skip("the others have tolerances")

    def draw_inputs():
        inputs = draw_sequence(gpu_target, *sizes)
        if small:  # h of about 2^-16, whose products count
            state_size = sizes[3]
            inputs[2][state_size : 2 * state_size] -= 11
            inputs[1][:, :state_size] *= 2**12
            inputs[3] *= 2**-16
        else:
            inputs[1] *= 0.5
        return inputs  # with larger weights the loop is chaotic, and one row's error outgrows all

    assert_errs_at_most_twice(draw_inputs)


@pytest.mark.parametrize("loss", ["last output", "h_n", "c_n"])
def test_partial_losses(gpu_target, loss):
    check_sequence(gpu_target, draw_sequence(gpu_target, 5, 6, 4, 256), loss)


@pytest.mark.parametrize("wanted", range(5))
def test_one_gradient_alone(gpu_target, wanted):
    inputs = draw_sequence(gpu_target, 5, 6, 4, 256)
    every = evaluate(lltm_sequence, inputs)
    alone = [t.clone().requires_grad_(i == wanted) for i, t in enumerate(inputs)]
    gradient = torch.autograd.grad(LOSSES["all"](lltm_sequence(*alone)), alone[wanted])
    assert all_equal(gradient, [every["d_" + INPUTS[wanted]]])


def test_wishes(gpu_target, monkeypatch):
    inputs = draw_sequence(gpu_target, 5, 6, 4, 256)
    monkeypatch.setenv(NAME, "loop")
    looped = evaluate(lltm_sequence, inputs)
    monkeypatch.setenv(NAME, "fast")
    with pytest.raises(RuntimeError, match="LLTM_SEQUENCE_PATH must be loop or persistent, got"):
        lltm_sequence(*inputs)
    monkeypatch.setenv(NAME, "persistent")
    if not spreads(gpu_target):
        with pytest.raises(RuntimeError, match="5 steps of batch size 6 and state size 256"):
            lltm_sequence(*inputs)
        return
    expected = evaluate(reference.lltm_sequence, exact(inputs))
    assert_same_sequences(evaluate(lltm_sequence, inputs), expected, gpu_target)
    assert_same_sequences(looped, expected, gpu_target)
    with pytest.raises(RuntimeError, match="no such kernel for zoneout"):
        keep = torch.zeros(5, 6, 256, dtype=torch.bool, device=gpu_target.device)
        lltm_sequence(*inputs, zoneout_h=keep)


def test_a_failure_is_raised_by_the_next_call(gpu_target, monkeypatch):
    if not spreads(gpu_target):
        pytest.skip("no kernel of this GPU waits")
    inputs = draw_sequence(gpu_target, 40, 16, 4, 512)
    monkeypatch.setenv("LLTM_SEQUENCE_PATIENCE", "1")
    output = lltm_sequence(*inputs)[0]
    torch.cuda.synchronize(gpu_target.device)
    assert output[-1].isnan().all()
    monkeypatch.delenv("LLTM_SEQUENCE_PATIENCE")
    with pytest.raises(RuntimeError, match="an earlier sequence did not come to its end"):
        lltm_sequence(*inputs)
    assert torch.isfinite(lltm_sequence(*inputs)[0]).all()  # the context lives


@pytest.mark.parametrize("tf32", [False, True])
def test_it_is_deterministic(gpu_target, tf32):
    """And slots of the exchange that are used again never show an old step."""
    torch.backends.cuda.matmul.allow_tf32 = tf32
    inputs = draw_sequence(gpu_target, 150, 40, 4, 384)
    first = evaluate(lltm_sequence, inputs).values()
    for _ in range(20):
        assert all_equal(evaluate(lltm_sequence, inputs).values(), first)


def test_two_streams_at_once(gpu_target):
    jobs = [draw_sequence(gpu_target, 60, rows, 4, size) for rows, size in ((16, 512), (64, 256))]
    expected = [[t.clone() for t in lltm_sequence(*job)] for job in jobs]
    torch.cuda.synchronize(gpu_target.device)
    streams = [torch.cuda.Stream(gpu_target.device) for _ in jobs]
    for _ in range(10):
        results = []
        for job, stream in zip(jobs, streams):
            with torch.cuda.stream(stream):
                results.append(lltm_sequence(*job))
        torch.cuda.synchronize(gpu_target.device)
        for result, value in zip(results, expected):
            assert all_equal(result, value)


def test_in_a_graph(gpu_target):
    with torch.cuda.device(gpu_target.device):
        inputs = draw_sequence(gpu_target, 20, 16, 4, 512)
        expected = [t.clone() for t in lltm_sequence(*inputs)]
        graph = torch.cuda.CUDAGraph()
        # Its own stream is of the device that was current when the first graph was captured.
        with torch.cuda.graph(graph, stream=torch.cuda.Stream()):
            results = lltm_sequence(*inputs)
        for _ in range(3):
            for result in results:
                result.zero_()
            graph.replay()
        torch.cuda.synchronize()
        assert all_equal(results, expected)


@pytest.mark.parametrize("sizes", [(20, 16, 4, 512), (8, 64, 4, 1024)], ids=str)
def test_gradients_in_a_graph(gpu_target, sizes):
    torch.backends.cuda.matmul.allow_tf32 = True
    with torch.cuda.device(gpu_target.device):
        inputs = [t.requires_grad_() for t in draw_sequence(gpu_target, *sizes)]

        def gradients():
            return torch.autograd.grad(lltm_sequence(*inputs)[0].sum(), inputs)

        side = torch.cuda.Stream()
        with torch.cuda.stream(side):
            expected = gradients()
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, stream=side):
            results = gradients()
        for _ in range(3):
            for result in results:
                result.zero_()
            graph.replay()
        torch.cuda.synchronize()
        assert all_equal(results, expected)


PROGRAM = """
import torch
from lltm_decoupled import LLTMSequence
layer = LLTMSequence(64, 512).cuda()
x = torch.randn(100, 16, 64, device="cuda")
first = layer(x)[0]
for _ in range(100):
    assert torch.equal(layer(x)[0], first)
"""


def test_beside_another_process():
    require_device("cuda:0")
    others = [subprocess.Popen([sys.executable, "-c", PROGRAM]) for _ in range(2)]
    try:
        assert [other.wait(timeout=120) for other in others] == [0, 0]
    finally:
        for other in others:
            other.kill()


def test_the_new_switch_of_tf32(gpu_target):
    """torch raises where its old one is asked after that."""
    matmul = torch.backends.cuda.matmul
    if not hasattr(matmul, "fp32_precision") or gpu_target.dtype != torch.float32:
        pytest.skip("this torch has no fp32_precision, or the dtype no TF32")
    inputs = draw_sequence(gpu_target, 5, 6, 4, 256)
    before = matmul.fp32_precision
    results = {}
    try:
        for precision in ("ieee", "tf32"):
            matmul.fp32_precision = precision
            results[precision] = lltm_sequence(*inputs)[0]
    finally:
        matmul.fp32_precision = before
    error = (results["tf32"] - results["ieee"]).norm() / results["ieee"].norm()
    assert error < 2**-9

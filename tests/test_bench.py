"""`bench`: what it prints and writes, what it leaves out, and contenders that fail."""

import csv
import functools
import json
import os
import sys
import types

import pytest
import torch
from test_cli import fails
from torch import nn

from lltm_decoupled import cli, reference
from lltm_decoupled.bench import contenders, machine, measure, timing

CPU = torch.device("cpu")
TINY = ["bench", "--device", "cpu", "--sizes", "3x2x4", "--steps", "3", "--turns", "1"]
PAIR = ["--contenders", "plain,LSTM"]


def bench(*arguments):
    return cli.main([str(argument) for argument in (*TINY, *arguments)])


@pytest.fixture
def written(tmp_path, capsys):
    """A run of everything small: (JSON, CSV rows, what it printed)."""
    files = tmp_path / "all.json", tmp_path / "all.csv"
    dtypes = "--dtype", "float32", "--dtype", "float64,float32"
    assert bench(*PAIR, *dtypes, "--json", files[0], "--csv", files[1]) == 0
    with open(str(files[1]), encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    return json.loads(files[0].read_text(encoding="utf-8")), rows, capsys.readouterr().out


def test_every_row_is_written_and_printed(written):
    document, table, printed = written
    rows = document["rows"]
    found = [(r["what"], r["dtype"], r["pass"], r["contender"]) for r in rows]
    assert found == [
        (what, dtype, pass_name, name)
        for what in ("cell", "layer")
        for dtype in ("float32", "float64")
        for pass_name in ("inference", "forward", "forward+backward")
        for name in ("ours", "plain", "LSTM")
    ]
    assert len(table) == len(rows)
    lines = [line for line in printed.splitlines() if line.startswith("3, 2, 4")]
    assert len(lines) == len(rows)
    for row, in_csv, line in zip(rows, table, lines):
        assert (row["B"], row["I"], row["H"]) == (3, 2, 4) and row["error"] is None
        assert row["steps"] == (3 if row["what"] == "layer" else 1)
        assert 0 < row["us_low"] <= row["us"] <= row["us_high"] and row["calls"] > 0
        assert float(in_csv["us"]) == row["us"] and in_csv["contender"] == row["contender"]
        assert in_csv["torch"] == torch.__version__
        assert line.split()[3:6] == [row["pass"], row["contender"], f"{row['us']:.2f}"]


def test_the_steps_of_a_layer_are_told(written, capsys):
    assert "\nlayer, float32, 3 steps\n" in written[2]
    assert bench("--what", "layer", "--steps", "1", *PAIR) == 0
    assert "\nlayer, float32, 1 step\n" in capsys.readouterr().out


def test_ratios_are_raw_and_by_gate(written):
    for start in range(0, len(written[0]["rows"]), 3):
        ours, plain, lstm = written[0]["rows"][start : start + 3]
        assert ours["times_ours"] == ours["times_ours_per_gate"] == 1
        assert plain["times_ours"] == plain["us"] / ours["us"]
        assert plain["times_ours_per_gate"] == pytest.approx(plain["times_ours"])
        assert lstm["times_ours"] == lstm["us"] / ours["us"]
        assert lstm["times_ours_per_gate"] == pytest.approx(0.75 * lstm["times_ours"])


def test_the_machine_is_named(written):
    facts = written[0]["machine"]
    assert facts["device"] == facts["host"] == machine.cpu_name() != ""
    assert (facts["torch"], facts["cuda"]) == (torch.__version__, torch.version.cuda)
    assert facts["threads"] == 1
    first = written[2].splitlines()[0]
    assert first == f"{facts['device']}, torch {torch.__version__}, 1 CPU thread"


def test_a_gpu_is_named_with_its_libraries():
    facts = dict(machine.describe(CPU, 2), device="GPU X", cuda="13.0", cudnn=91000, host="CPU Y")
    start = f"GPU X, torch {torch.__version__}, CUDA 13.0, cuDNN 91000, host CPU Y, "
    assert machine.in_words(facts) == start + "2 CPU threads"


def test_the_process_is_as_before(monkeypatch):
    monkeypatch.setattr(torch.backends.cudnn, "allow_tf32", True)
    cores = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else None
    threads = torch.get_num_threads()
    with pytest.raises(KeyboardInterrupt), machine.prepared(CPU, 3, tf32=False):
        assert torch.get_num_threads() == 3 and not torch.backends.cudnn.allow_tf32
        assert cores is None or len(os.sched_getaffinity(0)) == min(3, len(cores))
        raise KeyboardInterrupt
    assert torch.get_num_threads() == threads and torch.backends.cudnn.allow_tf32
    assert cores is None or os.sched_getaffinity(0) == cores


def test_a_device_that_gives_up_ends_it_in_a_line(monkeypatch, capsys, tmp_path):
    def release(device):
        raise RuntimeError("CUDA error: an illegal memory access was encountered\nhelp")

    monkeypatch.setattr(timing, "release", release)
    path = tmp_path / "rows.json"
    line = fails(capsys, *TINY, *PAIR, "--passes", "forward", "--json", path)
    assert "cannot go on at cell, float32, (3, 2, 4): RuntimeError: CUDA error: an ill" in line
    assert len(json.loads(path.read_text(encoding="utf-8"))["rows"]) == 3


class Raises(nn.Module):
    def __init__(self, input_size, hidden_size):
        super().__init__()

    def forward(self, *inputs):
        raise ValueError("first line\nsecond line")


def cannot_be_made(input_size, hidden_size):
    raise MemoryError


def test_a_contender_that_fails_is_reported_and_others_go_on(monkeypatch, capsys, tmp_path):
    monkeypatch.setitem(contenders.LAYERS, "plain", contenders.Contender(Raises))
    monkeypatch.setitem(contenders.LAYERS, "haste", contenders.Contender(cannot_be_made))
    path = tmp_path / "rows.json"
    chosen = "--contenders", "plain,haste,LSTM", "--passes", "forward"
    assert bench("--what", "layer", *chosen, "--json", path) == 0
    lines = capsys.readouterr().out.splitlines()
    start = "3, 2, 4          forward           "
    assert start + "plain           failed: ValueError: first line" in lines
    assert start + "haste           failed: MemoryError" in lines
    rows = {row["contender"]: row for row in json.loads(path.read_text(encoding="utf-8"))["rows"]}
    assert rows["plain"]["us"] is None and rows["plain"]["times_ours"] is None
    assert rows["plain"]["error"] == "ValueError: first line"
    assert rows["LSTM"]["times_ours"] > 0 and rows["ours"]["error"] is None


def test_the_exit_code_tells_that_ours_failed(monkeypatch, capsys):
    monkeypatch.setitem(contenders.CELLS, "ours", contenders.Contender(Raises))
    assert bench("--what", "cell", *PAIR, "--passes", "forward") == 1
    ours, plain, _ = capsys.readouterr().out.splitlines()[-3:]
    assert "ours            failed: ValueError" in ours
    assert plain.split()[-2:] == ["-", "-"]  # there is nothing to compare it with


def test_what_the_machine_lacks_is_left_out_with_its_reason(capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "extension_cpp", None)
    names = "ours-graph,LSTM-graph,haste,FlashRNN,tutorial"
    assert bench("--contenders", names, "--passes", "inference") == 0
    lines = capsys.readouterr().out.splitlines()
    assert "left out of the cells: ours-graph, LSTM-graph: CUDA graphs need a GPU" in lines
    assert "left out of the layers: haste, FlashRNN: needs a GPU" in lines
    assert any("cells: tutorial: cannot import extension_cpp.ops" in line for line in lines)
    assert len([line for line in lines if line.startswith("3, 2, 4")]) == 2


def test_ctrl_c_keeps_what_was_measured(monkeypatch, tmp_path, capsys):
    calls = []

    class Impatient(Raises):
        def forward(self, *inputs):
            calls.append(inputs)
            raise KeyboardInterrupt

    monkeypatch.setitem(contenders.LAYERS, "plain", contenders.Contender(Impatient))
    path = tmp_path / "rows.json"
    assert bench(*PAIR, "--json", path) == cli.INTERRUPTED
    assert {row["what"] for row in json.loads(path.read_text(encoding="utf-8"))["rows"]} == {"cell"}
    assert calls and "interrupted" in capsys.readouterr().err


def test_a_compiled_cell_is_that_cell(monkeypatch):
    if not hasattr(torch, "compile") or not hasattr(torch.library, "register_fake"):
        pytest.skip(f"torch {torch.__version__} does not compile for every Python")
    monkeypatch.setattr(torch, "compile", functools.partial(torch.compile, backend="eager"))
    cell = contenders.CompiledLoop(2, 4)
    input = torch.randn(3, 5, 2)
    plain = contenders.Loop(2, 4)
    plain.load_state_dict(cell.state_dict())
    torch.testing.assert_close(cell(input), plain(input))


@pytest.mark.parametrize("name", ["ours", "plain"])
def test_layers_are_what_they_say(name):
    layer = contenders.LAYERS[name].make(2, 4)
    weights, bias = layer.parameters()
    input, zeros = torch.randn(3, 5, 2), torch.zeros(5, 4)
    expected = reference.lltm_sequence(input, weights, bias, zeros, zeros)[0]
    torch.testing.assert_close(layer(input), expected)


def test_flashrnn_gets_its_shapes(monkeypatch):
    """The library needs a GPU; its argument shapes are those of its README."""

    def flashrnn(products, weights, bias, states=None, **options):
        batch, steps, gates, heads, units = products.shape
        assert weights.shape == (gates, heads, units, units) and bias.shape == weights.shape[:3]
        assert options == {"function": "lstm", "backend": "cuda_fused", "dtype": "float64"}
        state = (products.sum(2) + weights.sum() + bias.sum()).expand(2, batch, steps, heads, units)
        return state, state[:, :, -1:]

    monkeypatch.setitem(sys.modules, "flashrnn", types.SimpleNamespace(flashrnn=flashrnn))
    layer = contenders.FlashRNN(2, 4).double()
    input = torch.randn(3, 5, 2, dtype=torch.float64, requires_grad=True)
    assert layer(input).shape == (5, 3, 1, 4)
    for run in measure.PASSES.values():
        run(layer, (input,))


def test_contenders_take_turns():
    order = []
    runs = {name: lambda name=name: order.append(name) or len(order) for name in "ab"}
    taken, errors = timing.measure(runs, turns=2, calls=4)
    assert "".join(order) == "aaaabbbb" * 3 and errors == {}
    assert taken == {"a": [10, 11, 12, 18, 19, 20], "b": [14, 15, 16, 22, 23, 24]}


def test_a_slow_contender_has_short_turns(monkeypatch):
    monkeypatch.setattr(timing, "TURN_SECONDS", 0)
    assert timing.measure({"a": lambda: 1}, turns=3, calls=4) == ({"a": [1, 1, 1]}, {})


@pytest.mark.parametrize(
    "seconds, expected",
    [([], (None, None, None)), ([2e-6], (1, 1, 1)), ([2e-6, 4e-6, 8e-6], (2, 1.5, 3))],
)
def test_summary(seconds, expected):
    found = measure.summary(seconds, steps=2)
    assert found.pop("calls") == len(seconds)
    assert (found["us"], found["us_low"], found["us_high"]) == pytest.approx(expected)

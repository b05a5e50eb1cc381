"""Wrong calls where there is no compiled module: one error that names the argument, as with one."""

import pytest
import torch

from lltm_decoupled import cell, compat, jit, lltm_cell, lltm_sequence, reference, sequence


@pytest.fixture(autouse=True)
def formula(monkeypatch):
    monkeypatch.setattr(cell, "_cell", cell._from_formula)
    monkeypatch.setattr(sequence, "_sequence", sequence._from_formula)
    monkeypatch.setattr(compat, "loaded", lambda: None)


def of_cell(**changes):
    shapes = {"input": (3, 4), "weights": (15, 9), "bias": (15,), "old_h": (3, 5)}
    tensors = {name: torch.ones(shape) for name, shape in {**shapes, "old_cell": (3, 5)}.items()}
    return {**tensors, **changes}


def of_sequence(**changes):
    shapes = {"input": (6, 4), "weights": (15, 9), "bias": (15,), "h0": (3, 5), "c0": (3, 5)}
    tensors = {name: torch.ones(shape) for name, shape in shapes.items()}
    return {**tensors, "batch_sizes": torch.tensor([3, 2, 1]), **changes}


@pytest.mark.parametrize("function", [lltm_cell, compat.forward])
@pytest.mark.parametrize(
    "name, wrong",
    [
        ("input", torch.ones(3)),
        ("input", torch.ones(3, 4, dtype=torch.int64)),
        ("weights", torch.ones(15, 8)),
        ("bias", torch.ones(14)),
        ("old_h", torch.ones(1, 5)),
        ("old_cell", torch.ones(3, 5, dtype=torch.float64)),
        ("old_cell", torch.ones(3, 5, device="meta")),
    ],
)
def test_of_the_cell(function, name, wrong):
    with pytest.raises(RuntimeError, match=f"lltm_decoupled: expected {name} "):
        function(**of_cell(**{name: wrong}))
    with pytest.raises(TypeError, match=f"{name} must be a tensor"):
        function(**of_cell(**{name: 1}))


@pytest.mark.parametrize(
    "name, wrong",
    [
        ("h0", torch.ones(1, 3, 5)),
        ("c0", torch.ones(2, 5)),
        ("zoneout_h", torch.ones(6, 5)),
        ("zoneout_c", torch.ones(3, 5, dtype=torch.bool)),
        ("batch_sizes", torch.ones(3)),
        ("batch_sizes", torch.tensor([[3, 3]])),
        ("batch_sizes", torch.tensor([2, 2, 2])),  # h0 has three rows
        ("batch_sizes", torch.tensor([3, 1, 2])),
        ("batch_sizes", torch.tensor([3, 3, 0])),
        ("batch_sizes", torch.tensor([3, 2])),
        ("input", torch.ones(2, 3, 4)),
    ],
)
def test_of_a_sequence(name, wrong):
    with pytest.raises(RuntimeError, match=f"lltm_decoupled: expected {name} "):
        lltm_sequence(**of_sequence(**{name: wrong}))


@pytest.mark.parametrize("name", ["grad_h", "input_gate", "X", "gate_weights", "weights"])
def test_of_the_tutorials_backward(name):
    outputs = compat.forward(**of_cell())
    names = "new_cell, input_gate, output_gate, candidate_cell, X, gate_weights".split(", ")
    tensors = dict(zip(names, outputs[1:]), weights=torch.ones(15, 9))
    tensors.update(grad_h=torch.ones(3, 5), grad_cell=torch.ones(3, 5))
    assert len(compat.backward(**tensors)) == 5
    with pytest.raises(RuntimeError, match=f"lltm_decoupled: expected {name} "):
        compat.backward(**{**tensors, name: torch.ones(2, 7)})


def test_right_calls_still_give_the_formula():
    tensors = of_cell()
    for result, value in zip(lltm_cell(**tensors), reference.lltm_cell(*tensors.values())):
        assert torch.equal(result, value)
    empty = of_sequence(input=torch.ones(0, 4), batch_sizes=torch.ones(0, dtype=torch.int64))
    assert lltm_sequence(**empty)[0].shape == (0, 5)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        lltm_cell(**of_cell(input=torch.ones(3, 4, dtype=torch.bfloat16)))


def test_wrong_build_directories(monkeypatch, tmp_path):
    monkeypatch.setattr(jit._native, "loaded", lambda: None)
    monkeypatch.chdir(tmp_path)
    for wrong in (5, b"folder", ["a"]):
        with pytest.raises(TypeError, match="build_directory must be a path or None, got"):
            jit.load(wrong)
    (tmp_path / "file").touch()
    with pytest.raises(RuntimeError, match="cannot build in .*file"):
        jit.load(tmp_path / "file")
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


@pytest.mark.parametrize("function", [lltm_sequence, reference.lltm_sequence])
def test_half_a_state(function):
    three_steps = {"input": torch.ones(2, 3, 4), "batch_sizes": None}
    for changes, name, reason in (
        ({"h0": None, **three_steps}, "h0", "the other state"),
        ({"c0": None, **three_steps}, "c0", "the other state"),
        ({"h0": None, "c0": None}, "h0", "batch_sizes"),
    ):
        message = (
            f"^lltm_decoupled: expected {name} to be a tensor, as {reason} is given, got None$"
        )
        with pytest.raises(RuntimeError, match=message):
            function(**of_sequence(**changes))
    function(**of_sequence(h0=None, c0=None, **three_steps))

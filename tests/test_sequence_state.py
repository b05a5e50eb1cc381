"""LLTMSequence's parameters: names, first values, state dicts to and from cells, copies."""

import copy
import io
import math
import pickle

import pytest
import torch
from helpers import all_equal
from layer_helpers import draw_layer_call, make, same_results
from test_checkpoints import weights_only
from torch import nn

from lltm_decoupled import LLTM, LLTMSequence

BOTH_WAYS = {"num_layers": 2, "bidirectional": True}


def test_parameters(target):
    module = make(target, 3, 4, **BOTH_WAYS)
    shapes = [(name, tuple(p.shape)) for name, p in module.named_parameters()]
    assert shapes == [
        ("weights_l0", (12, 7)),
        ("bias_l0", (12,)),
        ("weights_l0_reverse", (12, 7)),
        ("bias_l0_reverse", (12,)),
        ("weights_l1", (12, 12)),
        ("bias_l1", (12,)),
        ("weights_l1_reverse", (12, 12)),
        ("bias_l1_reverse", (12,)),
    ]
    assert list(module.state_dict()) == [name for name, _ in shapes]
    assert [len(cell) for cell in module.all_weights] == [2] * 4
    pairs = zip(sum(module.all_weights, []), module.parameters())
    assert all(first is second for first, second in pairs)
    assert {p.dtype for p in module.parameters()} == {target.dtype}
    assert {p.device for p in module.parameters()} == {torch.device(target.device)}
    bare = make(target, 3, 4, bias=False)
    assert list(bare.state_dict()) == ["weights_l0"] and len(bare.all_weights[0]) == 1


def test_initial_values_are_those_of_the_cell():
    module = LLTMSequence(50, 100, 2)
    for parameter in module.parameters():
        assert parameter.abs().max() <= 0.1
        assert parameter.std().item() == pytest.approx(0.1 / math.sqrt(3), rel=0.2)
    torch.manual_seed(3)
    cell = LLTM(3, 4)
    torch.manual_seed(3)
    assert all_equal(LLTMSequence(3, 4).parameters(), cell.parameters())
    with torch.no_grad():
        module.bias_l1.fill_(5)
    module.reset_parameters()
    assert module.bias_l1.abs().max() <= 0.1


def test_a_state_dict_moves_to_and_from_cells_by_renaming(target):
    """A layer k of one direction is the cell `weights`, `bias`."""
    cells = nn.ModuleList(
        LLTM(size, 4, device=target.device, dtype=target.dtype) for size in (3, 4)
    )
    module = make(target, 3, 4, 2)
    renamed = {}
    for name, tensor in cells.state_dict().items():  # "0.weights" -> "weights_l0"
        layer, name = name.split(".")
        renamed[f"{name}_l{layer}"] = tensor
    module.load_state_dict(renamed)
    input, (h0, c0) = draw_layer_call(module)
    expected = [(h0[0], c0[0]), (h0[1], c0[1])]
    for value in input:
        for layer, cell in enumerate(cells):
            expected[layer] = cell(value, expected[layer])
            value = expected[layer][0]
    close = {"rtol": 10 * target.rtol, "atol": 10 * target.atol}
    torch.testing.assert_close(module(input, (h0, c0))[1][0][1], expected[1][0], **close)
    back = LLTM(3, 4, device=target.device, dtype=target.dtype)
    state = {
        name[: -len("_l0")]: tensor
        for name, tensor in module.state_dict().items()
        if name.endswith("_l0")
    }
    back.load_state_dict(state)
    assert all_equal(back.parameters(), cells[0].parameters())


@pytest.mark.parametrize("prefix", ["", "rnn."])
def test_old_biases_load(prefix, target):
    """Those of the tutorial are rows; the caller's dict stays as it was."""
    module = make(target, 3, 4, **BOTH_WAYS)
    model = nn.ModuleDict({"rnn": module}) if prefix else module
    old = {prefix + name: torch.randn_like(t) for name, t in module.state_dict().items()}
    biases = [name for name in old if "bias" in name]
    for name in biases:
        old[name] = old[name][None]
    model.load_state_dict(old)
    for name in biases:
        assert old[name].shape == (1, 12)
        assert torch.equal(model.state_dict()[name], old[name][0])
    with pytest.raises(RuntimeError, match="bias_l1_reverse"):
        model.load_state_dict(dict(old, **{prefix + "bias_l1_reverse": torch.zeros(1, 13)}))


def test_assigned_parameters_are_used(target):
    source, module = (make(target, 3, 4, **BOTH_WAYS) for _ in range(2))
    call = draw_layer_call(module)
    state = source.state_dict()
    state["bias_l0"] = state["bias_l0"][None]
    try:
        module.load_state_dict(state, assign=True)
    except TypeError:
        pytest.skip(f"torch {torch.__version__} cannot assign a state dict")
    assert same_results(module, source, call)
    module.weights_l1 = nn.Parameter(torch.zeros_like(module.weights_l1))
    assert not same_results(module, source, call)
    source.load_state_dict(module.state_dict())
    assert same_results(module, source, call)
    assert module.weights_l1.grad_fn is None and isinstance(module.bias_l0, nn.Parameter)


def saved_and_loaded(module):
    file = io.BytesIO()
    torch.save(module, file)
    file.seek(0)
    return torch.load(file, **weights_only(False))


COPIES = {
    "deepcopy": copy.deepcopy,
    "pickle": lambda module: pickle.loads(pickle.dumps(module)),
    "file": saved_and_loaded,
}


@pytest.mark.parametrize("way", COPIES)
def test_copies(way, target):
    module = make(target, 3, 4, **BOTH_WAYS, zoneout=(0.1, 0.2), recompute=True).eval()
    module.weights_l0_reverse = module.weights_l0  # tied, and so must the copy's be
    other = COPIES[way](module)
    call = draw_layer_call(module)
    assert same_results(other, module, call) and repr(other) == repr(module)
    assert other.weights_l0_reverse is other.weights_l0
    with torch.no_grad():
        other.weights_l0.zero_()
    assert not same_results(other, module, call)

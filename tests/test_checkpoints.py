"""State dicts of the tutorial and of our own, copies and pickles of modules."""

import copy
import inspect
import io
import pickle

import pytest
import torch
from helpers import all_equal, draw
from torch import nn

from lltm_decoupled import LLTM


def make(target):
    return LLTM(3, 4, device=target.device, dtype=target.dtype)


@pytest.mark.parametrize("prefix", ["", "layers.0."])
def test_checkpoint_of_the_tutorial_loads(prefix, target):
    """There the bias is a row of shape (1, 3 * state_size)."""
    module = make(target)
    model = nn.ModuleDict({"layers": nn.ModuleList([module])}) if prefix else module
    old = {
        prefix + "weights": torch.randn(12, 7, dtype=target.dtype),
        prefix + "bias": torch.randn(1, 12, dtype=target.dtype),
    }
    model.load_state_dict(old)
    assert module.bias.shape == (12,)
    assert torch.equal(module.bias.detach().cpu(), old[prefix + "bias"][0])
    assert old[prefix + "bias"].shape == (1, 12), "the caller's checkpoint was changed"
    assert model.state_dict()[prefix + "bias"].shape == (12,)


def test_refused_checkpoint_changes_nothing():
    module = LLTM(3, 4)
    before = copy.deepcopy(module.state_dict())
    for wrong in ((13,), (1, 13), (2, 12), (1, 1, 12)):
        with pytest.raises(RuntimeError, match="bias"):
            module.load_state_dict({"weights": before["weights"], "bias": torch.zeros(wrong)})
    with pytest.raises(RuntimeError, match="weights"):
        module.load_state_dict({"bias": before["bias"]})
    assert torch.equal(module.bias, before["bias"])


def weights_only(value):
    """Tensors alone load without trust in the file, a whole module needs it; old torch never asks.

    weights_only came with torch 1.13.
    """
    known = "weights_only" in inspect.signature(torch.load).parameters
    return {"weights_only": value} if known else {}


def save_and_load(module):
    file = io.BytesIO()
    torch.save(module.state_dict(), file)
    file.seek(0)
    loaded = LLTM(3, 4, device=module.weights.device, dtype=module.weights.dtype)
    loaded.load_state_dict(torch.load(file, **weights_only(True)))
    return loaded


def save_and_load_whole(module):
    file = io.BytesIO()
    torch.save(module, file)
    file.seek(0)
    return torch.load(file, **weights_only(False))


COPIES = {
    "deepcopy": copy.deepcopy,
    "pickle": lambda module: pickle.loads(pickle.dumps(module)),
    "state_dict file": save_and_load,
    "module file": save_and_load_whole,
}


@pytest.mark.parametrize("way", COPIES)
def test_copies_compute_the_same_and_are_independent(way, target):
    module = make(target)
    input, _, _, *state = draw(target)
    expected = module(input, state)
    twin = COPIES[way](module)
    assert all_equal(twin(input, state), expected)
    with torch.no_grad():
        module.weights.zero_()
    assert all_equal(twin(input, state), expected)


def checkpoints(target, shape):
    return {
        "weights": torch.randn(12, 7, dtype=target.dtype, device=target.device),
        "bias": torch.randn(*shape, dtype=target.dtype, device=target.device),
    }


@pytest.mark.parametrize("shape", [(12,), (1, 12)], ids=str)
@pytest.mark.parametrize("with_parameters", [False, True])
def test_assigned_state_dict(with_parameters, shape, target):
    """The parameters become the checkpoint's tensors, a row as the vector over the same memory."""
    if "assign" not in inspect.signature(nn.Module.load_state_dict).parameters:
        pytest.skip(f"load_state_dict of torch {torch.__version__} has no assign")
    with torch.device("meta"):
        module = LLTM(3, 4, dtype=target.dtype)
    given = checkpoints(target, shape)
    if with_parameters:
        given = {name: nn.Parameter(tensor) for name, tensor in given.items()}
    kept = dict(given)
    module.load_state_dict(given, assign=True)
    assert given.keys() == kept.keys() and all(given[name] is kept[name] for name in kept)
    assert given["bias"].shape == shape
    assert module.bias.shape == (12,) and module.bias.is_leaf and module.bias.requires_grad
    assert isinstance(module.bias, nn.Parameter)
    for name, parameter in module.named_parameters():
        assert parameter.data_ptr() == given[name].data_ptr(), name
    input, _, _, *state = draw(target)
    loss = module(input, state)[0].sum()
    assert all(gradient.any() for gradient in torch.autograd.grad(loss, module.parameters()))


@pytest.mark.parametrize("strict", [True, False])
def test_the_callers_dict_is_theirs(strict, target):
    """Whether the load succeeds or not, and through a model around the cell too."""
    cell = make(target)
    model = nn.Sequential(nn.ModuleDict({"cell": cell}))
    for module, prefix in ((cell, ""), (model, "0.cell.")):
        given = {prefix + name: t for name, t in checkpoints(target, (1, 12)).items()}
        broken = dict(given, **{prefix + "weights": given[prefix + "weights"][1:]})
        for state_dict in (given, broken):
            kept = dict(state_dict)
            if state_dict is broken:
                with pytest.raises(RuntimeError, match="weights"):
                    module.load_state_dict(state_dict, strict=strict)
            else:
                module.load_state_dict(state_dict, strict=strict)
            assert list(state_dict) == list(kept)
            assert all(state_dict[name] is kept[name] for name in kept)


@pytest.mark.parametrize("wrong", [None, 3.0, [[0.0] * 12]], ids=str)
def test_a_bias_that_is_no_tensor_is_torchs_error(wrong):
    """Not an AttributeError out of our own hook."""
    module = LLTM(3, 4)
    with pytest.raises(RuntimeError, match="bias"):
        module.load_state_dict(dict(module.state_dict(), bias=wrong))

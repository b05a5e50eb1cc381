"""State dicts of the tutorial and of our own, copies and pickles of modules."""

import copy
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


def save_and_load(module):
    file = io.BytesIO()
    torch.save(module.state_dict(), file)
    file.seek(0)
    loaded = LLTM(3, 4, device=module.weights.device, dtype=module.weights.dtype)
    loaded.load_state_dict(torch.load(file))
    return loaded


COPIES = {
    "deepcopy": copy.deepcopy,
    "pickle": lambda module: pickle.loads(pickle.dumps(module)),
    "state_dict file": save_and_load,
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

"""TorchScript: the modules are traced; torch.jit.script says so, and takes the functions."""

import warnings

import pytest
import torch
from helpers import draw
from sequence_helpers import draw_sequence
from test_misuse import by_class, make

from lltm_decoupled import lltm_cell, lltm_sequence, reference


@by_class
@pytest.mark.filterwarnings("ignore:.*torch.jit")
def test_script_names_the_ways_out(name):
    """Alone and inside of a model; torch.jit.trace takes them."""
    module, input = make(name)
    for model in (module, torch.nn.Sequential(torch.nn.Linear(3, 3), module)):
        with pytest.raises(RuntimeError, match="torch.jit.trace") as caught:
            torch.jit.script(model)
        cannot = f"torch.jit.script cannot compile {type(module).__name__}: "
        assert str(caught.value).startswith(cannot)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        traced = torch.jit.trace(module, (input,))
    assert torch.equal(traced(input)[0], module(input)[0])


def step(
    input: torch.Tensor,
    weights: torch.Tensor,
    bias: torch.Tensor,
    old_h: torch.Tensor,
    old_cell: torch.Tensor,
):
    return torch.ops.lltm_decoupled.cell(input, weights, bias, old_h, old_cell)


def steps(
    input: torch.Tensor,
    weights: torch.Tensor,
    bias: torch.Tensor,
    h0: torch.Tensor,
    c0: torch.Tensor,
):
    return torch.ops.lltm_decoupled.sequence(input, weights, bias, h0, c0, reverse=True)


@pytest.mark.filterwarnings("ignore:.*torch.jit")
def test_the_functions_that_can_be_scripted(float64_target):
    """As the message of a module says: the formula, and an operator inside of a function."""
    inputs = draw(float64_target)
    for function in (reference.lltm_cell, step):
        new_h, _ = torch.jit.script(function)(*inputs)
        torch.testing.assert_close(new_h, lltm_cell(*inputs)[0])
    inputs = draw_sequence(float64_target)
    output = torch.jit.script(steps)(*inputs)[0]
    torch.testing.assert_close(output, lltm_sequence(*inputs, reverse=True)[0])

"""Tensors that look like others and have no values, no sizes, or only some elements."""

import pytest
import torch

from lltm_decoupled import LLTM, LLTMSequence, lltm_cell, lltm_sequence
from lltm_decoupled.sequence import _from_formula as sequence_from_formula

SHAPES = ((12, 7), (12,), (5, 4), (5, 4))  # weights, bias, states


def ones(*shapes, device="cpu"):
    return [torch.ones(shape, device=device) for shape in shapes]


@pytest.mark.parametrize("sizes", [[5, 4, 3], [9, 9]], ids=str)
@pytest.mark.parametrize("recompute", [False, True])
def test_batch_sizes_without_values(sizes, recompute):
    """Of meta tensors they have none, and of others they must have some."""
    options = {"batch_sizes": torch.tensor(sizes, device="meta"), "recompute": recompute}
    for requires_grad in (False, True):
        inputs = [t.requires_grad_(requires_grad) for t in ones((12, 3), *SHAPES)]
        with pytest.raises(RuntimeError, match="expected batch_sizes to be .* on the CPU, got"):
            lltm_sequence(*inputs, **options)
    if hasattr(torch, "library"):  # which meta tensors need
        assert lltm_sequence(*ones((12, 3), *SHAPES, device="meta"), **options)[0].is_meta


@pytest.mark.skipif(not hasattr(torch, "nested"), reason="this torch has no nested tensors")
@pytest.mark.parametrize("function", [lltm_cell, lltm_sequence])
def test_nested_tensors(function):
    nested = torch.nested.nested_tensor(ones((2, 3), (1, 3)))
    with pytest.raises(RuntimeError, match="expected input to be a dense tensor, got a nested"):
        function(nested, *ones(*SHAPES))


@pytest.mark.skipif(not hasattr(torch, "nested"), reason="this torch has no nested tensors")
@pytest.mark.parametrize("layout", [torch.strided, getattr(torch, "jagged", torch.strided)])
def test_nested_tensors_in_modules(layout):
    rows = ones((2, 3), (1, 3))
    options = {} if layout == torch.strided else {"layout": layout}
    nested = torch.nested.nested_tensor(rows, **options)
    states = {LLTM: (torch.ones(2, 4),) * 2, LLTMSequence: (torch.ones(1, 2, 4),) * 2}
    for module, state in states.items():
        with pytest.raises(RuntimeError, match="expected input to be a dense tensor, got a nested"):
            module(3, 4)(nested)
        for place in range(2):
            wrong = [nested if place == i else part for i, part in enumerate(state)]
            with pytest.raises(RuntimeError, match="to be a dense tensor, got a nested one"):
                module(3, 4)(torch.ones(2, 3) if module is LLTM else torch.ones(5, 2, 3), wrong)


SEQUENCE = ("input", "weights", "bias", "h0", "c0", "zoneout_h", "zoneout_c")


@pytest.mark.parametrize("requires_grad", [False, True])
@pytest.mark.parametrize("name", SEQUENCE)
def test_sparse_arguments_of_a_sequence(name, requires_grad):
    values = dict(zip(SEQUENCE, [*ones((6, 5, 3), *SHAPES), *ones((6, 5, 4), (6, 5, 4))]))
    for mask in SEQUENCE[-2:]:
        values[mask] = values[mask].bool()
    values[name] = values[name].to_sparse()
    other = "weights" if name == "input" else "input"
    values[other].requires_grad_(requires_grad)
    with pytest.raises(RuntimeError, match=f"expected {name} to be a dense tensor") as caught:
        lltm_sequence(**values)
    assert "\n" not in str(caught.value).strip()
    if name in SEQUENCE[:5]:
        formula = [t for key, t in values.items() if key in SEQUENCE[:5]]
        with pytest.raises(RuntimeError, match=f"expected {name} to be a dense tensor"):
            sequence_from_formula(*formula, None, False, False, None, None)


def test_a_sparse_input_of_the_layer():
    with pytest.raises(RuntimeError, match="expected input to be a dense tensor, got layout"):
        LLTMSequence(3, 4)(torch.ones(6, 5, 3).to_sparse())


@pytest.mark.parametrize("function, outputs", [(lltm_cell, 2), (lltm_sequence, 3)])
def test_sparse_gradients(function, outputs):
    """They count as what they stand for."""
    shape = (5, 3) if function is lltm_cell else (6, 5, 3)
    inputs = [torch.randn_like(t).requires_grad_() for t in ones(shape, *SHAPES)]
    for place in range(outputs):
        output = function(*inputs)[place]
        grad = torch.zeros_like(output)
        grad[0, 1] = 2
        options = {"retain_graph": True, "allow_unused": True}
        expected = torch.autograd.grad(output, inputs, grad, **options)
        actual = torch.autograd.grad(output, inputs, grad.to_sparse(), **options)
        for a, b in zip(actual, expected):
            assert a is b or torch.equal(a, b)

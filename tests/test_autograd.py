"""The cell as a citizen of autograd: derivatives, every subset of inputs, any loss."""

import itertools

import pytest
import torch
from helpers import (
    CALLS,
    INPUTS,
    assert_close,
    assert_same_results,
    draw,
    draw_grads,
    evaluate,
    exact,
    leaves,
)
from torch.autograd import gradcheck, gradgradcheck

from lltm_decoupled import lltm_cell, reference

BIASES = ("vector", "row", None)
# The raw functions inside a Python Function have a first derivative only.
DIFFERENTIABLE_TWICE = [name for name in CALLS if name != "forward+backward"]


def away_from_the_kink(inputs):
    """ELU's second derivative jumps at 0: finite differences must not step over it."""
    input, weights, bias, old_h, _ = exact(inputs)
    gates = torch.cat([old_h, input], dim=1).mm(weights.t()) + (0 if bias is None else bias)
    assert gates[:, 2 * old_h.size(1) :].abs().min() > 1e-3
    return inputs


def small(target, bias):
    return away_from_the_kink(draw(target, batch_size=2, input_features=2, state_size=3, bias=bias))


@pytest.mark.parametrize("bias", BIASES)
@pytest.mark.parametrize("call", CALLS)
def test_gradcheck(call, bias, float64_target):
    assert gradcheck(CALLS[call], leaves(small(float64_target, bias)))


@pytest.mark.parametrize("bias", BIASES)
@pytest.mark.parametrize("call", DIFFERENTIABLE_TWICE)
def test_gradgradcheck(call, bias, float64_target):
    assert gradgradcheck(CALLS[call], leaves(small(float64_target, bias)))


def test_gradient_penalty(target):
    """A loss on a gradient, as WGAN-GP has it, reaches every parameter with the right values."""

    def penalty_gradients(function, inputs):
        inputs = leaves(inputs)
        new_h, new_cell = function(*inputs)
        (d_input,) = torch.autograd.grad((new_h * new_cell).sum(), inputs[0], create_graph=True)
        return torch.autograd.grad((d_input**2).sum(), inputs)

    inputs = draw(target)
    actual = penalty_gradients(lltm_cell, inputs)
    expected = penalty_gradients(reference.lltm_cell, exact(inputs))
    for name, tensor, value in zip(INPUTS, actual, expected):
        # a third factor of size one to ten and a sum over batch and features: 15 terms
        assert_close(tensor, value, target, "d_" + name, terms=15)


# A letter for each input that requires a gradient; without a bias its letter means nothing.
SUBSETS = ["".join(s) for n in range(1, 6) for s in itertools.combinations("iwbhc", n)]
CASES = [(s, "vector") for s in SUBSETS] + [(s, None) for s in SUBSETS if "b" not in s]


@pytest.mark.parametrize("subset, bias", CASES)
def test_every_subset_of_requires_grad(subset, bias, target):
    values = draw(target, bias=bias)
    grads = draw_grads(values)
    inputs = [
        None if t is None else t.clone().requires_grad_(letter in subset)
        for t, letter in zip(values, "iwbhc")
    ]
    outputs = lltm_cell(*inputs)
    assert all(output.requires_grad for output in outputs)
    torch.autograd.backward(outputs, grads)
    expected = evaluate(reference.lltm_cell, exact(values), exact(grads))
    for name, tensor, letter in zip(INPUTS, inputs, "iwbhc"):
        if letter not in subset:
            assert tensor is None or tensor.grad is None, name
        else:
            assert_close(tensor.grad, expected["d_" + name], target, "d_" + name, terms=5)


LOSSES = {
    "new_h only": lambda new_h, new_cell: new_h.sum(),
    "new_cell only": lambda new_h, new_cell: new_cell.sum(),
    "both, expanded": lambda new_h, new_cell: new_h.sum() + new_cell.sum(),
    "means": lambda new_h, new_cell: new_h.mean() - new_cell.mean(),
    "one number": lambda new_h, new_cell: new_h[2, 1] * new_cell[3, 0],
    "same output twice": lambda new_h, new_cell: (new_h * new_h).sum(),
}


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("call", CALLS)
def test_losses(call, loss, target):
    values = draw(target)
    gradients = {}
    for name, function, tensors in (
        ("actual", CALLS[call], leaves(values)),
        ("expected", reference.lltm_cell, leaves(exact(values))),
    ):
        found = torch.autograd.grad(LOSSES[loss](*function(*tensors)), tensors, allow_unused=True)
        gradients[name] = found
    for name, actual, expected in zip(INPUTS, gradients["actual"], gradients["expected"]):
        assert actual is not None and actual.shape == values[INPUTS.index(name)].shape
        assert_close(actual, expected, target, "d_" + name, terms=5)


def test_a_chain_of_steps(target):
    """Ten steps with shared weights: gradients add up over the steps and flow through the state."""

    def unroll(input, weights, bias, old_h, old_cell, function):
        for _ in range(10):
            old_h, old_cell = function(input, weights, bias, old_h, old_cell)
        return old_h, old_cell

    inputs = draw(target)
    grads = draw_grads(inputs)
    actual = evaluate(lambda *t: unroll(*t, function=lltm_cell), inputs, grads)
    expected = evaluate(
        lambda *t: unroll(*t, function=reference.lltm_cell), exact(inputs), exact(grads)
    )
    # each step adds its own roundings: ten times the terms of a sum over the batch
    assert_same_results(actual, expected, target._replace(atol=target.atol * 10), 50)


def test_second_backward(target):
    inputs = leaves(draw(target))
    loss = sum(output.sum() for output in lltm_cell(*inputs))
    first = torch.autograd.grad(loss, inputs, retain_graph=True)
    second = torch.autograd.grad(loss, inputs)
    assert all(torch.equal(a, b) for a, b in zip(first, second))
    with pytest.raises(RuntimeError, match="second time"):
        torch.autograd.grad(loss, inputs)


def test_gradients_accumulate(target):
    values = draw(target)
    grads = draw_grads(values)
    once = evaluate(lltm_cell, values, grads)
    inputs = leaves(values)
    for _ in range(2):
        torch.autograd.backward(lltm_cell(*inputs), grads)
    for name, tensor in zip(INPUTS, inputs):
        assert torch.equal(tensor.grad, once["d_" + name] * 2), name


def test_results_do_not_depend_on_grad_mode(target):
    inputs = draw(target)
    with_grad = lltm_cell(*leaves(inputs))
    without = lltm_cell(*inputs)
    assert all(torch.equal(a, b) for a, b in zip(with_grad, without))

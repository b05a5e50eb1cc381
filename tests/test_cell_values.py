"""One step of the cell, by every public way to compute it, against the float64 CPU reference."""

import pytest
import torch
from helpers import (
    CALLS,
    assert_close,
    check_against_reference,
    draw,
    draw_grads,
    evaluate,
    exact,
    plain_formula,
)

import lltm_decoupled

BIASES = ("vector", "row", None)  # (3H), the tutorial's (1, 3H), no bias


@pytest.mark.parametrize("bias", BIASES)
@pytest.mark.parametrize("call", CALLS)
def test_outputs_and_gradients(call, bias, target):
    inputs = draw(target, bias=bias)
    check_against_reference(CALLS[call], inputs, target)


@pytest.mark.parametrize("sizes", [(7, 64, 33), (64, 40, 128), (1, 300, 1), (3, 1, 5)], ids=str)
def test_other_shapes(sizes, target):
    check_against_reference(lltm_decoupled.lltm_cell, draw(target, *sizes), target)


@pytest.mark.parametrize("bias", BIASES)
def test_raw_forward_returns_all_seven_values(bias, target):
    inputs = draw(target, bias=bias)
    names = "new_h new_cell input_gate output_gate candidate_cell X gate_weights".split()
    actual = lltm_decoupled.forward(*inputs)
    expected = plain_formula(*exact(inputs))
    assert isinstance(actual, list)
    assert len(actual) == len(names)
    for name, tensor, value in zip(names, actual, expected):
        assert (tensor.dtype, tensor.device) == (target.dtype, torch.device(target.device)), name
        assert not tensor.requires_grad, name
        assert_close(tensor, value, target, name)


def test_raw_backward_has_the_tutorials_order_and_bias_shape(target):
    inputs = draw(target)
    grads = draw_grads(inputs)
    outputs = lltm_decoupled.forward(*inputs)
    d_values = lltm_decoupled.backward(*grads, *outputs[1:], inputs[1])
    assert isinstance(d_values, list)
    order = "d_old_h d_input d_weights d_bias d_old_cell".split()
    expected = evaluate(lambda *tensors: plain_formula(*tensors)[:2], exact(inputs), exact(grads))
    expected["d_bias"] = expected["d_bias"].reshape(1, -1)  # (1, 3H) as the tutorial returns it
    assert len(d_values) == len(order)
    for name, tensor in zip(order, d_values):
        assert tensor.shape == expected[name].shape, name
        assert_close(tensor, expected[name], target, name, terms=inputs[0].size(0))


def test_raw_backward_uses_only_what_it_is_given(target):
    """Saved values of another batch size and state than the last forward's: nothing is cached."""
    first, second = draw(target), draw(target, batch_size=2, state_size=6)
    grads = draw_grads(first)
    outputs = lltm_decoupled.forward(*first)
    before = lltm_decoupled.backward(*grads, *outputs[1:], first[1])
    lltm_decoupled.forward(*second)
    after = lltm_decoupled.backward(*grads, *outputs[1:], first[1])
    assert all(torch.equal(a, b) for a, b in zip(before, after))


def test_the_reference_is_the_plain_formula():
    """The oracle itself, held to the seven lines of the definition and to its own module."""
    inputs = [torch.randn(*shape, dtype=torch.float64) for shape in
              ((5, 3), (12, 7), (12,), (5, 4), (5, 4))]  # fmt: skip
    expected = plain_formula(*inputs)[:2]
    module = lltm_decoupled.reference.LLTM(3, 4, dtype=torch.float64)
    module.load_state_dict({"weights": inputs[1], "bias": inputs[2]})
    for actual in (
        lltm_decoupled.reference.lltm_cell(*inputs),
        module(inputs[0], (inputs[3], inputs[4])),
    ):
        torch.testing.assert_close(tuple(actual), tuple(expected), rtol=1e-14, atol=1e-14)


def test_inputs_are_left_alone(target):
    inputs = draw(target)
    copies = [t.clone() for t in inputs]
    grads = draw_grads(inputs)
    evaluate(lltm_decoupled.lltm_cell, inputs, grads)
    outputs = lltm_decoupled.forward(*inputs)
    saved = [t.clone() for t in outputs]
    lltm_decoupled.backward(*grads, *outputs[1:], inputs[1])
    assert all(torch.equal(a, b) for a, b in zip(inputs + outputs, copies + saved))


def test_a_state_may_be_one_tensor_twice(target):
    """`state = (zeros, zeros)` with the same object is what users write for a first step."""
    inputs = draw(target)
    inputs[4] = inputs[3]
    check_against_reference(lltm_decoupled.lltm_cell, inputs, target)

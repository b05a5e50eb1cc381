"""Any strides in, packed and fresh tensors out: kernels that take bare pointers must not notice."""

import pytest
import torch
from helpers import INPUTS, assert_fresh, check_against_reference, draw, draw_grads, leaves
from torch.autograd import forward_ad

import lltm_decoupled


def offset(tensor):
    """The same values one element into a longer buffer (also breaks 16-byte alignment)."""
    buffer = tensor.new_full((tensor.numel() + 3,), float("nan"))
    buffer[1 : 1 + tensor.numel()] = tensor.reshape(-1)
    return buffer[1 : 1 + tensor.numel()].view(tensor.shape)


def strided(tensor):
    """Every second column of a wider tensor; NaN between the values."""
    wide = tensor.new_full(tensor.shape[:-1] + (2 * tensor.shape[-1],), float("nan"))
    wide[..., ::2] = tensor
    return wide[..., ::2]


def transposed(tensor):
    """Column-major; a vector has no columns and comes back strided."""
    return tensor.t().contiguous().t() if tensor.dim() == 2 else strided(tensor)


def padded_rows(tensor):
    """Rows of a wider matrix: unit stride inside a row, a gap of NaN after it."""
    wide = tensor.new_full(tensor.shape[:-1] + (tensor.shape[-1] + 3,), float("nan"))
    wide[..., : tensor.shape[-1]] = tensor
    return wide[..., : tensor.shape[-1]]


def expanded(tensor):
    """The first row for all rows (a vector: its first element), with stride 0."""
    return tensor[:1].expand_as(tensor)


def one_element(tensor):
    """A single number with stride 0 everywhere: what the backward of sum() hands over."""
    return tensor.reshape(-1)[0].expand(tensor.shape)


LAYOUTS = {f.__name__: f for f in (offset, strided, transposed, padded_rows, expanded, one_element)}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("changed", INPUTS + ("all",))
def test_input_layouts(changed, layout, target):
    inputs = draw(target)
    for position, name in enumerate(INPUTS):
        if changed in (name, "all"):
            inputs[position] = LAYOUTS[layout](inputs[position])
    check_against_reference(lltm_decoupled.lltm_cell, inputs, target)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("changed", ("grad_h", "grad_cell", "both"))
def test_output_gradient_layouts(changed, layout, target):
    inputs = draw(target)
    grads = draw_grads(inputs)
    for position, name in enumerate(("grad_h", "grad_cell")):
        if changed in (name, "both"):
            grads[position] = LAYOUTS[layout](grads[position])
    check_against_reference(lltm_decoupled.lltm_cell, inputs, target, grads)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_raw_functions_take_any_layout(layout, target):
    make = LAYOUTS[layout]
    inputs = [make(t) for t in draw(target)]
    packed = [t.contiguous() for t in inputs]
    outputs = lltm_decoupled.forward(*inputs)
    expected = lltm_decoupled.forward(*packed)
    arguments = [make(t) for t in draw_grads(inputs) + outputs[1:]] + [inputs[1]]
    d_values = lltm_decoupled.backward(*arguments)
    d_expected = lltm_decoupled.backward(*[t.contiguous() for t in arguments])
    for actual, value in zip(outputs + d_values, expected + d_expected):
        # A matrix product may take another path for another layout: equal, but not bit for bit.
        torch.testing.assert_close(actual, value, rtol=target.rtol, atol=target.atol)


@pytest.mark.parametrize("layout", ["packed"] + list(LAYOUTS))
def test_outputs_are_fresh_and_contiguous(layout, target):
    make = LAYOUTS.get(layout, lambda t: t)
    inputs = [make(t) for t in draw(target)]
    grads = [make(t) for t in draw_grads(inputs)]

    outputs = lltm_decoupled.lltm_cell(*inputs)
    assert_fresh(outputs, inputs)

    raw = lltm_decoupled.forward(*inputs)
    assert_fresh(raw, inputs)
    d_values = lltm_decoupled.backward(*grads, *raw[1:], inputs[1])
    assert_fresh(d_values, grads + raw + inputs)

    with_grad = leaves(inputs)
    outputs = lltm_decoupled.lltm_cell(*with_grad)
    assert_fresh(outputs, inputs)
    gradients = torch.autograd.grad(outputs, with_grad, grads)
    assert_fresh(gradients, grads + inputs)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_states_are_contiguous_in_forward_mode_and_under_autocast(layout, target):
    """There PyTorch's own operations compute them."""
    inputs = [LAYOUTS[layout](t) for t in draw(target)]
    with torch.autocast("cpu", torch.bfloat16):
        outputs = lltm_decoupled.lltm_cell(*inputs)
    assert all(output.is_contiguous() for output in outputs)
    with forward_ad.dual_level():
        input = draw(target)[0]
        dual = forward_ad.make_dual(input, torch.randn_like(input))
        outputs = lltm_decoupled.lltm_cell(dual, *inputs[1:])
        assert all(output.is_contiguous() for output in outputs)


@pytest.mark.parametrize("changed", range(5), ids=INPUTS)
def test_lazily_negated_inputs(changed, target):
    """z.conj().imag is a real tensor whose memory holds the opposite sign."""
    inputs = draw(target)
    expected = lltm_decoupled.forward(*inputs)
    inputs[changed] = torch._neg_view(-inputs[changed])
    assert inputs[changed].is_neg()
    for actual in (lltm_decoupled.forward(*inputs), lltm_decoupled.lltm_cell(*inputs)):
        for tensor, value in zip(actual, expected):
            torch.testing.assert_close(tensor, value, rtol=target.rtol, atol=target.atol)


@pytest.mark.parametrize("changed", range(9))
def test_lazily_negated_arguments_of_raw_backward(changed, target):
    inputs = draw(target)
    arguments = draw_grads(inputs) + lltm_decoupled.forward(*inputs)[1:] + [inputs[1]]
    expected = lltm_decoupled.backward(*arguments)
    arguments[changed] = torch._neg_view(-arguments[changed])
    for tensor, value in zip(lltm_decoupled.backward(*arguments), expected):
        torch.testing.assert_close(tensor, value, rtol=target.rtol, atol=target.atol)


def test_outputs_do_not_inherit_an_odd_stride(target):
    """Sizes of one make strides ambiguous: (5, 1) of stride (1, 7) counts as contiguous."""
    inputs = draw(target, state_size=1)
    column = torch.stack([inputs[3].reshape(-1)] * 7, dim=1)[:, :1]  # (5, 1), stride (7, 1)
    inputs[3] = column
    check_against_reference(lltm_decoupled.lltm_cell, inputs, target)
    for output in lltm_decoupled.lltm_cell(*inputs):
        assert output.stride() == (1, 1)

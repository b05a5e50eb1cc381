"""Sequences of any strides."""

import pytest
import torch
from helpers import assert_close, exact, leaves
from sequence_helpers import INPUTS, check_sequence, draw_sequence, ragged
from test_cell_layouts import LAYOUTS
from test_sequence_values import check_way, options_of
from torch.autograd import forward_ad

from lltm_decoupled import lltm_sequence, reference


@pytest.mark.parametrize("layout", LAYOUTS)
def test_layouts(layout, target):
    """Any strides of the inputs, one at a time and all, and of the masks."""
    make = LAYOUTS[layout]
    for packed in (False, True):
        inputs = draw_sequence(target)
        inputs, options = options_of(inputs, ragged(4, 5) if packed else None, zoneout=True)
        for position in range(len(inputs)):
            changed = [make(t) if i == position else t for i, t in enumerate(inputs)]
            check_sequence(target, changed, **options)
        # a mask has no NaN for its gaps; a transposed one has strides enough
        for name in ("zoneout_h", "zoneout_c"):
            options[name] = options[name].transpose(0, 1).contiguous().transpose(0, 1)
        check_sequence(target, [make(t) for t in inputs], **options)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_outputs_are_contiguous_in_forward_mode_and_under_autocast(layout, target):
    inputs = [LAYOUTS[layout](t) for t in draw_sequence(target)]
    with torch.autocast("cpu", torch.bfloat16):
        outputs = lltm_sequence(*inputs)
    assert all(output.is_contiguous() for output in outputs)
    for steps in (4, 0):
        input = draw_sequence(target, steps)[0]
        with forward_ad.dual_level():
            dual = forward_ad.make_dual(input, torch.randn_like(input))
            weights = inputs[1].clone().requires_grad_()
            outputs = lltm_sequence(dual, weights, *inputs[2:])
            assert all(output.is_contiguous() for output in outputs)
            for output in outputs:
                output.mul_(2)  # none is a view


def test_time_first_view_of_batch_first_input(target):
    """What batch_first hands over: strides of another order, not of a gap."""
    inputs = draw_sequence(target)
    inputs[0] = inputs[0].transpose(0, 1).contiguous().transpose(0, 1)
    for way in ({}, {"reverse": True}, {"recompute": True}):
        check_way(target, inputs, **way)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_output_gradient_layouts(layout, target):
    """Such as the one element, expanded, that sum() hands to backward."""
    inputs = draw_sequence(target)
    others = leaves(exact(inputs))
    for recompute in (False, True):
        for reverse in (False, True):
            values = reference.lltm_sequence(*others, reverse=reverse)
            tensors = leaves(inputs)
            outputs = lltm_sequence(*tensors, reverse=reverse, recompute=recompute)
            grads = [LAYOUTS[layout](torch.randn(o.shape).to(o)) for o in outputs]
            actual = torch.autograd.grad(outputs, tensors, grads)
            expected = torch.autograd.grad(values, others, exact(grads))
            for name, gradient, value in zip(INPUTS, actual, expected):
                assert_close(gradient, value, target, name, terms=20)  # rows of all steps


@pytest.mark.parametrize("create_graph", [False, True])
def test_batch_sizes_of_any_stride(create_graph, float64_target):
    sizes = torch.tensor([3, 3, 3])
    column = torch.tensor([[3, 1], [3, 4], [3, 2]])[:, 0]
    spaced = torch.tensor([3, 99, 3, 99, 3])[::2]
    for batch_sizes in (sizes, column, spaced, torch.tensor([3]).expand(3)):
        inputs = draw_sequence(float64_target, 3, 3)
        others, tensors = leaves(exact(inputs)), leaves(inputs)
        values = reference.lltm_sequence(*others)
        packed = [tensors[0].flatten(0, 1), *tensors[1:]]
        outputs = lltm_sequence(*packed, batch_sizes=batch_sizes)
        loss, value = (sum(t.square().sum() for t in results) for results in (outputs, values))
        actual = torch.autograd.grad(loss, tensors, create_graph=create_graph)
        expected = torch.autograd.grad(value, others)
        for name, gradient, want in zip(INPUTS, actual, expected):
            assert_close(gradient.detach(), want, float64_target, name, terms=9)


@pytest.mark.parametrize("state_size", [5, 257])
def test_a_single_row_of_any_stride(target, state_size):
    """Where there is one row, a dense tensor's stride from row to row may be any number."""
    inputs = draw_sequence(target, 3, 1, 4, state_size)
    for i in (3, 4):
        inputs[i] = inputs[i].as_strided((1, state_size), (1, 1))
        assert inputs[i].is_contiguous()
    check_sequence(target, inputs)

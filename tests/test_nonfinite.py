"""NaN, infinities, huge and tiny numbers, stale memory: what comes out is what the formula says."""

import math

import pytest
import torch
from helpers import (
    CALLS,
    INPUTS,
    assert_same_results,
    check_against_reference,
    draw,
    draw_grads,
    evaluate,
    exact,
)

import lltm_decoupled
from lltm_decoupled import lltm_cell, reference

SPECIAL = (math.nan, math.inf, -math.inf)


def put(tensor, value):
    """`value` in the middle of `tensor`."""
    tensor.view(-1)[tensor.numel() // 2] = value


@pytest.mark.parametrize("value", SPECIAL, ids=str)
@pytest.mark.parametrize("name", INPUTS)
def test_special_values_in_one_input(name, value, target):
    inputs = draw(target)
    put(inputs[INPUTS.index(name)], value)
    check_against_reference(lltm_cell, inputs, target)


@pytest.mark.parametrize("value", SPECIAL, ids=str)
@pytest.mark.parametrize("position", [0, 1], ids=["grad_h", "grad_cell"])
def test_special_values_in_an_output_gradient(position, value, target):
    inputs = draw(target)
    grads = draw_grads(inputs)
    put(grads[position], value)
    check_against_reference(lltm_cell, inputs, target, grads)


def test_an_infinity_and_a_nan_together(target):
    inputs = draw(target)
    for tensor, value in zip(inputs, SPECIAL + SPECIAL):
        put(tensor, value)
    check_against_reference(lltm_cell, inputs, target)


# Pre-activations around the points where exp, expm1 and tanh over- or underflow in float32 (88.7,
# 103.9), in float64 (709.8, 745.1) or in the half types (11.1), just below them, where 2^n alone
# does, and where 1 + x rounds to 1.
EXTREME = (0.0, 1e-300, 1e-45, 1e-38, 1e-8, 9.1, 11.2, 17.0, 88.0, 88.5, 89.5, 104.5, 709.0, 709.5,
           710.5, 746.0, 1e4, 1e30)  # fmt: skip


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("gate", range(3), ids=["input_gate", "output_gate", "candidate_cell"])
def test_extreme_gates(gate, call, target):
    """The gate alone is extreme: the other two and the cell stay of size one."""
    column = torch.tensor([sign * v for v in EXTREME for sign in (1, -1)], dtype=torch.float64)
    column = column.to(target.device, target.dtype)[:, None]  # the input, B = 36, I = H = 1
    weights = torch.zeros(3, 2, dtype=target.dtype, device=target.device)
    weights[gate, 1] = 1
    bias = torch.tensor([0.5, -0.25, -0.75], dtype=target.dtype, device=target.device)
    bias[gate] = 0
    state = torch.full_like(column, 0.5)
    inputs = [column, weights, bias, state, state]
    grads = draw_grads(inputs)
    actual = evaluate(CALLS[call], inputs, grads)
    expected = evaluate(reference.lltm_cell, exact(inputs), exact(grads))
    # d_weights sums gradient * 1e30 over the rows: compared per row only, as d_input
    for results in (actual, expected):
        del results["d_weights"]
    assert_same_results(actual, expected, target, len(column))


def test_extreme_cells(target):
    """tanh of an extreme cell: +-1 with a derivative of exactly 0 beyond the last digit."""
    values = [sign * v for v in EXTREME for sign in (1, -1)]
    inputs = draw(target, batch_size=len(values))
    inputs[4][:] = torch.tensor(values, dtype=torch.float64).to(inputs[4])[:, None]
    check_against_reference(lltm_cell, inputs, target)


def fill_allocator_with_nan(device):
    """Leave blocks of NaN of many sizes behind for the next allocations to find."""
    sizes = [n for n in (5, 15, 37, 60, 185, 210, 555, 1000, 3000, 4551, 20000) for _ in range(8)]
    blocks = [torch.full((n,), math.nan, dtype=dtype, device=device)
              for n in sizes for dtype in (torch.float32, torch.float64)]  # fmt: skip
    del blocks


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("bias", ["vector", "row", None])
def test_outputs_are_fully_written(bias, call, target):
    inputs = draw(target, batch_size=5, input_features=4, state_size=37, bias=bias)
    grads = draw_grads(inputs)
    for _ in range(5):
        fill_allocator_with_nan(target.device)
        check_against_reference(CALLS[call], inputs, target, grads)


def test_raw_outputs_are_fully_written(target):
    inputs = draw(target, batch_size=5, input_features=4, state_size=37)
    grads = draw_grads(inputs)
    for _ in range(5):
        fill_allocator_with_nan(target.device)
        outputs = lltm_decoupled.forward(*inputs)
        fill_allocator_with_nan(target.device)
        d_values = lltm_decoupled.backward(*grads, *outputs[1:], inputs[1])
        assert all(bool(torch.isfinite(t).all()) for t in outputs + d_values)


@pytest.mark.parametrize("sizes", [(5, 3, 4), (64, 33, 257), (300, 20, 64)], ids=str)
def test_same_inputs_give_the_same_bits(sizes, target):
    inputs = draw(target, *sizes)
    grads = draw_grads(inputs)
    first = evaluate(lltm_cell, inputs, grads)
    for _ in range(3):
        again = evaluate(lltm_cell, inputs, grads)
        assert all(torch.equal(first[name], again[name]) for name in first)

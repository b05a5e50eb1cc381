"""Sizes around warps, blocks, vectors and 32-bit indices; nothing, one row, and very many rows."""

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
    leaves,
)

import lltm_decoupled
from lltm_decoupled import reference

SIZES = (0, 1, 31, 32, 33, 255, 256, 257, 1024, 1025)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("dimension", ["batch_size", "input_features", "state_size"])
def test_hostile_sizes(dimension, size, target):
    inputs = draw(target, **{dimension: size})
    check_against_reference(lltm_decoupled.lltm_cell, inputs, target)


@pytest.mark.parametrize("bias", ["vector", "row", None])
@pytest.mark.parametrize("call", CALLS)
def test_empty_batch(call, bias, target):
    """No rows: outputs of shape (0, H), and weight gradients that are zero, not None or garbage."""
    inputs = draw(target, batch_size=0, bias=bias)
    results = evaluate(CALLS[call], inputs, draw_grads(inputs))
    assert results["new_h"].shape == results["new_cell"].shape == (0, 4)
    assert results["d_input"].shape == (0, 3)
    assert not results["d_weights"].any()
    assert bias is None or not results["d_bias"].any()


def test_empty_batch_in_raw_functions(target):
    inputs = draw(target, batch_size=0)
    outputs = lltm_decoupled.forward(*inputs)
    assert [tuple(t.shape) for t in outputs] == [(0, 4)] * 5 + [(0, 7), (0, 12)]
    d_values = lltm_decoupled.backward(*draw_grads(inputs), *outputs[1:], inputs[1])
    assert [tuple(t.shape) for t in d_values] == [(0, 4), (0, 3), (12, 7), (1, 12), (0, 4)]
    assert not d_values[2].any() and not d_values[3].any()


def test_more_rows_than_a_grid_dimension(target):
    """65,535 is the limit of grid y and z."""
    inputs = draw(target, batch_size=70001, input_features=2, state_size=3)
    check_against_reference(lltm_decoupled.lltm_cell, inputs, target)


def test_rows_are_independent(target):
    """A wrong row stride is right for one row and wrong above."""
    inputs = draw(target, batch_size=7, input_features=5, state_size=33)
    grads = draw_grads(inputs)
    whole = evaluate(lltm_decoupled.lltm_cell, inputs, grads)
    for row in range(7):
        rows = slice(row, row + 1)
        one = [inputs[0][rows], inputs[1], inputs[2], inputs[3][rows], inputs[4][rows]]
        alone = evaluate(lltm_decoupled.lltm_cell, one, [grad[rows] for grad in grads])
        for name in ("new_h", "new_cell", "d_input", "d_old_h", "d_old_cell"):
            what = f"{name} of row {row}"
            assert_close(whole[name][rows], alone[name], target, what)


def test_a_changed_row_changes_only_itself(target):
    inputs = draw(target, batch_size=33, input_features=5, state_size=31)
    before = lltm_decoupled.lltm_cell(*inputs)
    inputs[0][16] += 1
    after = lltm_decoupled.lltm_cell(*inputs)
    for old, new in zip(before, after):
        changed = (old != new).any(dim=1).nonzero().reshape(-1).tolist()
        assert changed == [16]


@pytest.fixture
def memory_given_back():
    """torch keeps freed GPU memory for itself: most of a card, that others may need meanwhile."""
    yield
    if torch.cuda.is_available():
        torch.cuda.empty_cache()


def test_more_than_two_to_the_31_gate_elements(cuda_target, memory_given_back):
    """32-bit indices wrap here; the last rows are the ones that go wrong."""
    state_size, input_features = 32, 1
    batch_size = 2**31 // (3 * state_size) + 2
    # In (B, H) tensors: 2 inputs, 2 outputs and 3 for the gates, then 2 packed gradients, 3 for
    # d_gates and 2 results; 14, and 2 to spare.
    element = torch.empty((), dtype=cuda_target.dtype).element_size()
    needed = batch_size * state_size * element * 16
    torch.cuda.empty_cache()
    free = torch.cuda.mem_get_info(0)[0]
    if free < needed:
        pytest.skip(f"needs {needed / 1e9:.0f} GB of GPU memory, {free / 1e9:.0f} GB are free")

    few = draw(cuda_target, 1000, input_features, state_size)
    repeats = -(-batch_size // 1000)

    def many(tensor):
        return tensor.repeat(repeats, 1)[:batch_size]

    inputs = leaves([many(few[0]), few[1], few[2], many(few[3]), many(few[4])])
    outputs = lltm_decoupled.lltm_cell(*inputs)
    grad_h = torch.ones((), dtype=cuda_target.dtype, device=cuda_target.device)
    grads = [grad_h.expand(batch_size, state_size)] * 2
    gradients = torch.autograd.grad(outputs, inputs, grads)

    results = dict(zip(("new_h", "new_cell"), outputs))
    results.update(d_input=gradients[0], d_old_h=gradients[3], d_old_cell=gradients[4])
    rows = torch.tensor([0, 1, batch_size // 2, batch_size - 2, batch_size - 1])
    source = rows % 1000
    exact_few = exact(few)
    expected_inputs = [t[source] if t.dim() == 2 and t.size(0) == 1000 else t for t in exact_few]
    ones = [torch.ones(len(rows), state_size, dtype=torch.float64)] * 2
    expected = evaluate(reference.lltm_cell, expected_inputs, ones)
    for name, tensor in results.items():
        assert_close(tensor[rows.to(tensor.device)], expected[name], cuda_target, name)
    if cuda_target.dtype != torch.float16:  # these sums over all rows exceed its largest value
        assert bool(torch.isfinite(gradients[1]).all() and torch.isfinite(gradients[2]).all())

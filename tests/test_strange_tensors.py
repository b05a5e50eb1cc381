"""Tensors that look like others and have no values, or no sizes."""

import pytest
import torch

from lltm_decoupled import lltm_cell, lltm_sequence

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
    assert lltm_sequence(*ones((12, 3), *SHAPES, device="meta"), **options)[0].is_meta


@pytest.mark.skipif(not hasattr(torch, "nested"), reason="this torch has no nested tensors")
@pytest.mark.parametrize("function", [lltm_cell, lltm_sequence])
def test_nested_tensors(function):
    nested = torch.nested.nested_tensor(ones((2, 3), (1, 3)))
    with pytest.raises(RuntimeError, match="expected input to be a dense tensor, got a nested"):
        function(nested, *ones(*SHAPES))

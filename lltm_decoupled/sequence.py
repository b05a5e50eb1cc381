"""LLTM over whole sequences: the compiled operator as a function, and as a layer like nn.LSTM."""

from typing import Any, Callable, Optional, Tuple

import torch
from torch import Tensor

from . import reference
from ._arguments import refuse_non_flag, refuse_non_tensors
from ._layer import LLTMSequenceBase
from ._native import when_loaded
from ._sequence_shapes import check_batch_sizes, check_sequence
from ._shapes import can_check

__all__ = ["LLTMSequence", "lltm_sequence"]


def _from_formula(
    input: Tensor,
    weights: Tensor,
    bias: Optional[Tensor],
    h0: Optional[Tensor],
    c0: Optional[Tensor],
    batch_sizes: Optional[Tensor],
    reverse: bool,
    recompute: bool,
    zoneout_h: Optional[Tensor],
    zoneout_c: Optional[Tensor],
) -> Tuple[Tensor, Tensor, Tensor]:
    """Until there is an operator. autograd keeps every step, with recompute too."""
    if can_check(input):
        check_sequence(input, weights, bias, h0, c0, batch_sizes, zoneout_h, zoneout_c)
        if batch_sizes is not None and h0 is not None and not batch_sizes.is_meta:
            check_batch_sizes(batch_sizes, input, h0)
    return reference.lltm_sequence(
        input,
        weights,
        bias,
        h0,
        c0,
        batch_sizes=batch_sizes,
        reverse=reverse,
        zoneout_h=zoneout_h,
        zoneout_c=zoneout_c,
    )


_sequence: Callable[..., Any] = _from_formula


@when_loaded
def _take_the_operator() -> None:
    # The one overload, found once: torch before 1.12 has no names for overloads.
    global _sequence
    operator = torch.ops.lltm_decoupled.sequence
    _sequence = getattr(operator, "default", operator)


def lltm_sequence(
    input: Tensor,
    weights: Tensor,
    bias: Optional[Tensor],
    h0: Optional[Tensor] = None,
    c0: Optional[Tensor] = None,
    *,
    batch_sizes: Optional[Tensor] = None,
    reverse: bool = False,
    recompute: bool = False,
    zoneout_h: Optional[Tensor] = None,
    zoneout_c: Optional[Tensor] = None,
) -> Tuple[Tensor, Tensor, Tensor]:
    """All steps of a sequence, each one of lltm_cell, in one operator.

    The tensors may have any strides. Differentiable to any order. The same operator is
    torch.ops.lltm_decoupled.sequence.

    Args:
        input: (steps, batch_size, input_features), float32, float64, float16 or bfloat16; with
            batch_sizes the packed data (rows, input_features)
        weights: (3 * state_size, state_size + input_features)
        bias: (3 * state_size), (1, 3 * state_size) or None
        h0, c0: (batch_size, state_size), h and cell before the first step, or both None for zeros,
            but not with batch_sizes. On a GPU the product with these zeros may be left out, in
            which an infinite weight would give NaN.
            All of input's dtype and on its device.
        batch_sizes: how many rows each step has, as a PackedSequence says it: int64 on the CPU,
            positive, never growing, from batch_size, together the rows of input. The rows of the
            states are in the packed order.
        reverse: the steps are taken from the last to the first; the output keeps the input's
            order. Of packed data each row starts at its own last step.
        recompute: keep only inputs and output for backward, and one cell for every 32 steps, and
            compute the rest again there: less memory for more time; the values are the same, but
            for rounding
        zoneout_h, zoneout_c: bool, of the output's shape, or None; where True a unit keeps its old
            h, or its old cell, in that step

    Returns:
        (output, h_n, c_n): h of every step, (steps, batch_size, state_size) or packed
        (rows, state_size), and h and cell after the last step of each row, (batch_size,
        state_size). New, contiguous, of input's dtype. Without steps h_n is h0 and c_n is c0. Under
        torch.autocast inputs may differ in dtype, and results are of autocast's, but for float64.

    Raises:
        RuntimeError: a tensor of the wrong shape, dtype or device; the message names the argument,
            what it got and what was expected. Nothing was computed then.
        TypeError: what is no tensor, or no bool for a flag; the message names the argument

    Source: bindings/sequence.h; the formula in PyTorch is reference.lltm_sequence.
    """
    refuse_non_flag("reverse", reverse)
    refuse_non_flag("recompute", recompute)
    try:
        outputs: Tuple[Tensor, Tensor, Tensor] = _sequence(
            input, weights, bias, h0, c0, batch_sizes, reverse, recompute, zoneout_h, zoneout_c
        )
    except Exception:
        refuse_non_tensors(
            {"input": input, "weights": weights},
            optional={
                "bias": bias,
                "h0": h0,
                "c0": c0,
                "batch_sizes": batch_sizes,
                "zoneout_h": zoneout_h,
                "zoneout_c": zoneout_c,
            },
        )
        raise
    return outputs


class LLTMSequence(LLTMSequenceBase):
    __doc__ = LLTMSequenceBase.__doc__

    _sequence = staticmethod(lltm_sequence)

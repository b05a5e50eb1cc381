"""The LLTM cell: the compiled operator as a function, as the tutorial's Function, as a module."""

from typing import Any, Callable, Optional, Tuple

import torch
from torch import Tensor

from . import reference
from ._arguments import NotCalled, refuse_non_tensors
from ._module import LLTMBase
from ._native import when_loaded
from ._shapes import can_check, check_cell

__all__ = ["LLTM", "LLTMFunction", "lltm_cell"]


def _from_formula(
    input: Tensor, weights: Tensor, bias: Optional[Tensor], old_h: Tensor, old_cell: Tensor
) -> Tuple[Tensor, Tensor]:
    """Until there is an operator."""
    if can_check(input):
        check_cell(input, weights, bias, old_h, old_cell)
    return reference.lltm_cell(input, weights, bias, old_h, old_cell)


_cell: Callable[..., Any] = _from_formula


@when_loaded
def _take_the_operator() -> None:
    # The one overload, found once: torch before 1.12 has no names for overloads.
    global _cell
    _cell = getattr(torch.ops.lltm_decoupled.cell, "default", torch.ops.lltm_decoupled.cell)


def lltm_cell(
    input: Tensor, weights: Tensor, bias: Optional[Tensor], old_h: Tensor, old_cell: Tensor
) -> Tuple[Tensor, Tensor]:
    """One step of the LLTM cell.

    gates = [old_h, input] @ weights.T + bias, split into input gate, output gate and candidate;
    new_cell = old_cell + elu(candidate) * sigmoid(input gate);
    new_h = tanh(new_cell) * sigmoid(output gate).

    The tensors may have any strides. Differentiable to any order. The same operator is
    torch.ops.lltm_decoupled.cell.

    Args:
        input: (batch_size, input_features), float32, float64, float16 or bfloat16; half types are
            computed in float32 and rounded once
        weights: (3 * state_size, state_size + input_features)
        bias: (3 * state_size), (1, 3 * state_size) or None
        old_h, old_cell: (batch_size, state_size)
            All of input's dtype and on its device.

    Returns:
        (new_h, new_cell), both (batch_size, state_size), new, contiguous, of input's dtype. Under
        torch.autocast inputs may differ in dtype, and results have those that nn.LSTMCell's have.

    Raises:
        RuntimeError: a tensor of the wrong shape, dtype or device; the message names the argument,
            what it got and what was expected. Nothing was computed then.
        TypeError: what is no tensor; the message names the argument too

    Source: bindings/cell.cpp, cuda_core/lltm.h; the formula in PyTorch is reference.lltm_cell.
    """
    try:
        outputs: Tuple[Tensor, Tensor] = _cell(input, weights, bias, old_h, old_cell)
    except Exception:
        tensors = {"input": input, "weights": weights, "old_h": old_h, "old_cell": old_cell}
        refuse_non_tensors(tensors, optional={"bias": bias})
        raise
    return outputs


class LLTMFunction(NotCalled):
    """The tutorial's name for lltm_cell, called as LLTMFunction.apply(...).

    Shapes, dtypes and errors are those of lltm_cell.
    """

    _calls = "LLTMFunction.apply(...)"

    @staticmethod
    def apply(
        input: Tensor, weights: Tensor, bias: Optional[Tensor], old_h: Tensor, old_cell: Tensor
    ) -> Tuple[Tensor, Tensor]:
        """lltm_cell(input, weights, bias, old_h, old_cell)"""
        return lltm_cell(input, weights, bias, old_h, old_cell)


class LLTM(LLTMBase):
    __doc__ = LLTMBase.__doc__

    _cell = staticmethod(lltm_cell)

"""The tutorial's two compiled modules by their old names.

    from lltm_decoupled.compat import lltm_cpp, lltm_cuda

in place of `import lltm_cpp` and `import lltm_cuda`. Each serves every device. All tensors are
float32, float64, float16 or bfloat16, of one dtype and on one device, with any strides; a wrong
shape, dtype or device raises RuntimeError and names the argument. No gradient is recorded: they are
for use inside a torch.autograd.Function, as in the tutorial.
"""

from typing import List, Optional

from torch import Tensor

from . import reference
from ._arguments import NotCalled, refuse_non_tensors
from ._native import loaded
from ._shapes import check_cell, check_tutorial_backward

__all__ = ["backward", "forward", "lltm_cpp", "lltm_cuda"]


def forward(
    input: Tensor, weights: Tensor, bias: Optional[Tensor], old_h: Tensor, old_cell: Tensor
) -> List[Tensor]:
    """The tutorial's lltm_cpp.forward and lltm_cuda.forward.

    Shapes: input (batch_size, input_features), weights (3 * state_size, state_size +
    input_features), bias (3 * state_size), (1, 3 * state_size) or None, old_h and old_cell
    (batch_size, state_size); of one dtype.

    Returns:
        [new_h, new_cell, input_gate, output_gate, candidate_cell, X, gate_weights]: the first five
        (batch_size, state_size), X = [old_h, input], gate_weights (batch_size, 3 * state_size).

    Raises:
        RuntimeError: a tensor of the wrong shape, dtype or device; the message names it
        TypeError: what is no tensor; the message names it

    Source: bindings/tutorial.cpp.
    """
    try:
        if not loaded():
            check_cell(input, weights, bias, old_h, old_cell)
        outputs: List[Tensor] = (loaded() or reference).forward(
            input, weights, bias, old_h, old_cell
        )
    except Exception:
        tensors = {"input": input, "weights": weights, "old_h": old_h, "old_cell": old_cell}
        refuse_non_tensors(tensors, optional={"bias": bias})
        raise
    return outputs


def backward(
    grad_h: Tensor,
    grad_cell: Tensor,
    new_cell: Tensor,
    input_gate: Tensor,
    output_gate: Tensor,
    candidate_cell: Tensor,
    X: Tensor,
    gate_weights: Tensor,
    weights: Tensor,
) -> List[Tensor]:
    """The tutorial's lltm_cpp.backward, with what forward returned.

    Shapes: the gradients, new_cell and the gates (batch_size, state_size), the rest as forward
    has it.

    Returns:
        [d_old_h, d_input, d_weights, d_bias, d_old_cell]; d_bias is (1, 3 * state_size), the others
        have the shape of what they are the gradient of.

    Raises:
        RuntimeError: a tensor of the wrong shape, dtype or device; the message names it
        TypeError: what is no tensor; the message names it

    Source: bindings/tutorial.cpp.
    """
    return _backward_with_d_gates(
        grad_h,
        grad_cell,
        new_cell,
        input_gate,
        output_gate,
        candidate_cell,
        X,
        gate_weights,
        weights,
    )[:5]


def _backward_with_d_gates(
    grad_h: Tensor,
    grad_cell: Tensor,
    new_cell: Tensor,
    input_gate: Tensor,
    output_gate: Tensor,
    candidate_cell: Tensor,
    X: Tensor,
    gate_weights: Tensor,
    weights: Tensor,
) -> List[Tensor]:
    """As backward, with d_gates (batch_size, 3 * state_size) as a sixth value."""
    tensors = {
        "grad_h": grad_h,
        "grad_cell": grad_cell,
        "new_cell": new_cell,
        "input_gate": input_gate,
        "output_gate": output_gate,
        "candidate_cell": candidate_cell,
        "X": X,
        "gate_weights": gate_weights,
        "weights": weights,
    }
    try:
        if not loaded():
            check_tutorial_backward(**tensors)
        gradients: List[Tensor] = (loaded() or reference).backward(**tensors)
    except Exception:
        refuse_non_tensors(tensors, optional={})
        raise
    return gradients


class lltm_cuda(NotCalled):
    """The tutorial's compiled CUDA module. Shapes are those of forward and backward.

    Its backward returns d_gates, (batch_size, 3 * state_size), as a sixth value.
    """

    _calls = "lltm_cuda.forward(...) or lltm_cuda.backward(...)"
    forward = staticmethod(forward)
    backward = staticmethod(_backward_with_d_gates)


class lltm_cpp(NotCalled):
    """The tutorial's compiled C++ module. Shapes are those of forward and backward."""

    _calls = "lltm_cpp.forward(...) or lltm_cpp.backward(...)"
    forward = staticmethod(forward)
    backward = staticmethod(backward)

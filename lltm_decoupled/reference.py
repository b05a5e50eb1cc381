"""The LLTM cell in plain PyTorch: the readable definition, and the oracle of the tests.

Every function and module here gives the result that its compiled twin must give, on any device and
dtype that PyTorch's own operators support. Under torch.autocast it is what these make of it: dtypes
may be others. Use it where a compiled operator cannot go, such as an
ONNX export, or a torch.jit.trace that runs without this package: the parameters and the state dict
are the same.
"""

from typing import Any, List, Optional, Sequence, Tuple

import torch
import torch.nn.functional as F
from torch import Tensor

from ._arguments import refuse_non_flag
from ._layer import LLTMSequenceBase
from ._module import LLTMBase

__all__ = ["LLTM", "LLTMSequence", "backward", "forward", "lltm_cell", "lltm_sequence"]


def lltm_cell(
    input: Tensor, weights: Tensor, bias: Optional[Tensor], old_h: Tensor, old_cell: Tensor
) -> Tuple[Tensor, Tensor]:
    """One step of the LLTM cell, in plain PyTorch.

    Args:
        input: (batch_size, input_features)
        weights: (3 * state_size, state_size + input_features); rows are the input gate, the output
            gate and the candidate, columns are old_h first, then input
        bias: (3 * state_size), (1, 3 * state_size) or None
        old_h, old_cell: (batch_size, state_size)

    Returns:
        (new_h, new_cell), both (batch_size, state_size), of the inputs' dtype.

    Raises:
        RuntimeError: from PyTorch's own operators, where shapes, dtypes or devices do not fit.

    Source: the LLTM of the PyTorch tutorial "Custom C++ and CUDA Extensions".
    """
    gates = F.linear(torch.cat([old_h, input], dim=1), weights)
    if bias is not None:
        gates = gates + bias
    input_gate, output_gate, candidate = gates.chunk(3, dim=1)
    new_cell = old_cell + F.elu(candidate) * torch.sigmoid(input_gate)
    new_h = torch.tanh(new_cell) * torch.sigmoid(output_gate)
    return new_h, new_cell


def lltm_sequence(
    input: Tensor,
    weights: Tensor,
    bias: Optional[Tensor],
    h0: Optional[Tensor] = None,
    c0: Optional[Tensor] = None,
    *,
    batch_sizes: Optional[Tensor] = None,
    reverse: bool = False,
    zoneout_h: Optional[Tensor] = None,
    zoneout_c: Optional[Tensor] = None,
) -> Tuple[Tensor, Tensor, Tensor]:
    """All steps of a sequence, in plain PyTorch: a loop over lltm_cell.

    Args:
        input: (steps, batch_size, input_features), or with batch_sizes the packed data
            (rows, input_features)
        weights, bias: as lltm_cell has them
        h0, c0: (batch_size, state_size), before the first step, or both None for zeros, but not
            with batch_sizes
        batch_sizes: of packed data, how many rows each step has; they never grow
        reverse: from the last step to the first; the output stays in the input's order
        zoneout_h, zoneout_c: bool, of the output's shape: where True the old h, or the old cell,
            is kept in that step. The new h is made of the new cell as it was before that.

    Returns:
        (output, h_n, c_n): h of every step, (steps, batch_size, state_size) or packed
        (rows, state_size); h and cell after the last step of each row, (batch_size, state_size)

    Raises:
        RuntimeError: from PyTorch's own operators, where shapes, dtypes or devices do not fit.
        TypeError: reverse is not a bool

    Source: lltm_cell; zoneout is that of Krueger et al., "Zoneout: Regularizing RNNs by Randomly
    Preserving Hidden Activations", with masks that are given.
    """

    refuse_non_flag("reverse", reverse)

    def steps_of(tensor: Tensor) -> Sequence[Tensor]:
        if batch_sizes is None:
            return tensor.unbind(0)
        return tensor.split_with_sizes(batch_sizes.tolist())

    if h0 is None or c0 is None:
        if h0 is not c0 or batch_sizes is not None:
            missing = "h0" if h0 is None else "c0"
            reason = "the other state" if batch_sizes is None else "batch_sizes"
            raise RuntimeError(
                f"lltm_decoupled: expected {missing} to be a tensor, as {reason} is given, got None"
            )
        h0 = c0 = input.new_zeros(input.size(1), weights.size(0) // 3)
    inputs = steps_of(input)
    keep_h = None if zoneout_h is None else steps_of(zoneout_h)
    keep_c = None if zoneout_c is None else steps_of(zoneout_c)
    outputs = list(inputs)
    h, c = h0, c0
    for t in reversed(range(len(inputs))) if reverse else range(len(inputs)):
        rows = inputs[t].size(0)  # the rest has ended before, or begins later
        old_h, old_c = h[:rows], c[:rows]
        new_h, new_c = lltm_cell(inputs[t], weights, bias, old_h, old_c)
        if keep_h is not None:
            new_h = torch.where(keep_h[t], old_h, new_h)
        if keep_c is not None:
            new_c = torch.where(keep_c[t], old_c, new_c)
        outputs[t] = new_h
        h, c = torch.cat([new_h, h[rows:]]), torch.cat([new_c, c[rows:]])
    if not outputs:
        return input.new_empty(input.shape[:-1] + h0.shape[-1:]), h, c
    return (torch.stack if batch_sizes is None else torch.cat)(outputs), h, c


@torch.no_grad()
def forward(
    input: Tensor, weights: Tensor, bias: Optional[Tensor], old_h: Tensor, old_cell: Tensor
) -> List[Tensor]:
    """The tutorial's raw forward; shapes and results as lltm_decoupled.forward has."""
    X = torch.cat([old_h, input], dim=1)
    gate_weights = X.mm(weights.t())
    if bias is not None:
        gate_weights = gate_weights + bias
    gates = gate_weights.chunk(3, dim=1)
    input_gate, output_gate = torch.sigmoid(gates[0]), torch.sigmoid(gates[1])
    candidate_cell = F.elu(gates[2])
    new_cell = old_cell + candidate_cell * input_gate
    new_h = torch.tanh(new_cell) * output_gate
    return [new_h, new_cell, input_gate, output_gate, candidate_cell, X, gate_weights]


@torch.no_grad()
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
    """The tutorial's raw backward, with d_gates as a sixth value.

    Shapes are as lltm_decoupled.backward has them.
    """
    state_size = new_cell.size(1)
    candidate = gate_weights[:, 2 * state_size :]
    tanh_cell = torch.tanh(new_cell)
    d_cell = grad_h * output_gate * (1 - tanh_cell * tanh_cell) + grad_cell
    d_elu = torch.where(candidate > 0, torch.ones_like(candidate), torch.exp(candidate))
    d_gates = torch.cat(
        [
            d_cell * candidate_cell * input_gate * (1 - input_gate),
            grad_h * tanh_cell * output_gate * (1 - output_gate),
            d_cell * input_gate * d_elu,
        ],
        dim=1,
    )
    d_X = d_gates.mm(weights)
    d_bias = d_gates.sum(0, keepdim=True)
    d_old_h, d_input = d_X[:, :state_size].clone(), d_X[:, state_size:].clone()
    return [d_old_h, d_input, d_gates.t().mm(X), d_bias, d_cell, d_gates]


class LLTM(LLTMBase):
    """lltm_decoupled.LLTM in plain PyTorch: the same arguments, parameters and calls.

    What is wrong with a tensor PyTorch's own operations say, or they unite it as they do elsewhere.
    """

    _cell = staticmethod(lltm_cell)


class LLTMSequence(LLTMSequenceBase):
    """lltm_decoupled.LLTMSequence in plain PyTorch: the same arguments, parameters and calls.

    recompute is accepted and saves nothing: autograd keeps every step. Wrong tensors are as with
    reference.LLTM.
    """

    @staticmethod
    def _sequence(*args: Any, recompute: bool, **options: Any) -> Tuple[Tensor, Tensor, Tensor]:
        return lltm_sequence(*args, **options)

"""The LLTM cell in plain PyTorch: the readable definition, and the oracle of the tests.

Every function and module here gives the result that its compiled twin must give, on any device and
dtype that PyTorch's own operators support. Use it where a compiled operator cannot go, such as an
ONNX or TorchScript export: the parameters and the state dict are the same.
"""

import torch
import torch.nn.functional as F

from ._module import LLTMBase

__all__ = ["LLTM", "lltm_cell"]


def lltm_cell(input, weights, bias, old_h, old_cell):
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


class LLTM(LLTMBase):
    __doc__ = LLTMBase.__doc__

    _cell = staticmethod(lltm_cell)

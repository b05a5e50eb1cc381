"""The module around a cell function: parameters, default state, old checkpoints."""

import math
import sys
from typing import TYPE_CHECKING, Any, Callable, Dict, Optional, SupportsIndex

import torch
from torch import Tensor, nn
from torch.types import Device

from ._arguments import (
    Pair,
    State,
    flag,
    floating,
    pair,
    positive,
    refuse_foreign_input,
    refuse_foreign_state,
    refuse_nested,
    refuse_two_states,
    shown_as,
)


class LLTMParameters(nn.Module):
    """Weights and biases in the cell's layout: how they are made, drawn and loaded."""

    def _add_cell(
        self, suffix: str, input_features: int, state_size: int, bias: bool, factory: Dict[str, Any]
    ) -> None:
        """Adds the parameters of one cell, `weights` and `bias` with a suffix to their names."""
        shape = (3 * state_size, state_size + input_features)
        if shape[0] * shape[1] > sys.maxsize // 8:  # torch would speak of an int64_t
            raise ValueError(f"no memory holds weights{suffix} of shape {shape}")
        weights = nn.Parameter(torch.empty(shape, **factory))
        self.register_parameter("weights" + suffix, weights)
        vector = nn.Parameter(torch.empty(3 * state_size, **factory)) if bias else None
        self.register_parameter("bias" + suffix, vector)

    def _parameter(self, name: str) -> Any:
        """As getattr, which takes a microsecond to find that it is no attribute of another kind."""
        parameters = self._parameters
        return parameters[name] if name in parameters else getattr(self, name)

    def _draw_parameters(self, state_size: int) -> None:
        bound = 1.0 / math.sqrt(state_size)
        for parameter in self.parameters():
            nn.init.uniform_(parameter, -bound, bound)

    def _load_from_state_dict(
        self, state_dict: Dict[str, Any], prefix: str, *args: Any, **kwargs: Any
    ) -> None:
        # The tutorial's bias is (1, 3 * state_size). The caller's dict is theirs: it is a copy of
        # it that load_state_dict passes here.
        for name, parameter in self._parameters.items():
            if parameter is None or not name.startswith("bias"):
                continue
            bias = state_dict.get(prefix + name)
            if isinstance(bias, torch.Tensor) and bias.shape == (1, parameter.numel()):
                state_dict[prefix + name] = bias.reshape(-1)
        super()._load_from_state_dict(state_dict, prefix, *args, **kwargs)

    def __prepare_scriptable__(self) -> "LLTMParameters":
        """torch.jit.script asks for this before it compiles, and would fail in words of its own."""
        raise RuntimeError(
            f"torch.jit.script cannot compile {type(self).__name__}: take torch.jit.trace, or "
            "script a function that calls torch.ops.lltm_decoupled or reference.lltm_cell"
        )


@shown_as("LLTM")
class LLTMBase(LLTMParameters):
    """An LLTM cell: one step of the recurrent unit of the PyTorch extension tutorial.

    Args:
        input_features: the number of values in each input
        state_size: the number of values in h and in the cell
        bias: whether there is a bias
        device, dtype: of the parameters, as in every module of torch.nn

    Parameters:
        weights: (3 * state_size, state_size + input_features)
        bias: (3 * state_size); absent with bias=False. A checkpoint of the tutorial, with a bias of
            (1, 3 * state_size), loads as it is.

    Call it with input (batch_size, input_features) and state, a pair (h, cell) of tensors of
    (batch_size, state_size), or None for zeros. It returns (new_h, new_cell), both
    (batch_size, state_size). As with nn.LSTMCell a single sample needs no batch dimension: input
    (input_features) and state (state_size), (state_size) give two tensors of (state_size).

    Raises:
        ValueError: a size is not a positive integer, dtype not one of lltm_cell's
        RuntimeError: a tensor of the wrong shape, dtype or device; the message names it
        TypeError: bias is not a bool, input not a tensor, state not a pair of tensors
    """

    weights: nn.Parameter
    bias: Optional[nn.Parameter]
    _cell: Callable[..., Pair]

    def __init__(
        self,
        input_features: SupportsIndex,
        state_size: SupportsIndex,
        bias: bool = True,
        device: Device = None,
        dtype: Optional[torch.dtype] = None,
    ) -> None:
        super().__init__()
        self.input_features = input_features = positive("input_features", input_features)
        self.state_size = state_size = positive("state_size", state_size)
        factory = {"device": device, "dtype": floating("dtype", dtype)}
        self._add_cell("", input_features, state_size, flag("bias", bias), factory)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draws every parameter from U(-1 / sqrt(state_size), 1 / sqrt(state_size))."""
        self._draw_parameters(self.state_size)

    if TYPE_CHECKING:  # nn.Module's own tells nothing

        def __call__(self, input: Tensor, state: Optional[State] = None) -> Pair: ...

    def forward(self, input: Tensor, state: Optional[State] = None, *more: object) -> Pair:
        if more:
            refuse_two_states(self, "(h, cell)")
        if not isinstance(input, torch.Tensor):
            raise TypeError(f"input must be a tensor, got {type(input).__name__}")
        refuse_nested("input", input)
        if state is None:
            old_h = old_cell = input.new_zeros(input.shape[:-1] + (self.state_size,))
        else:
            old_h, old_cell = pair(state, "h, cell")
        if not input.dim() == old_h.dim() == old_cell.dim():
            shapes = (tuple(tensor.shape) for tensor in (input, old_h, old_cell))
            raise RuntimeError(
                "lltm_decoupled: expected input, h and cell with a batch dimension each, or "
                "without one each, got input {}, h {} and cell {}".format(*shapes)
            )
        if input.dim() == 1:
            rows = (tensor.unsqueeze(0) for tensor in (input, old_h, old_cell))
            new_h, new_cell = self._step(*rows)
            return new_h.squeeze(0), new_cell.squeeze(0)
        return self._step(input, old_h, old_cell)

    def _step(self, input: Tensor, old_h: Tensor, old_cell: Tensor) -> Pair:
        weights = self._parameter("weights")
        try:
            return self._cell(input, weights, self._parameter("bias"), old_h, old_cell)
        except RuntimeError:
            refuse_foreign_input(input, weights)
            refuse_foreign_state(input, old_h, old_cell, self.state_size)
            raise

    def extra_repr(self) -> str:
        bias = "" if self.bias is not None else ", bias=False"
        return f"{self.input_features}, {self.state_size}{bias}"

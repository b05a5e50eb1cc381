"""The layer around a sequence function: nn.LSTM's conventions with LLTM's cell."""

from typing import TYPE_CHECKING, Any, Callable, List, Optional, Tuple, Union, overload

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.nn.utils.rnn import PackedSequence

from ._arguments import (
    Pair,
    State,
    counted,
    first_size,
    has_shape,
    is_tracing,
    pair,
    probabilities,
    probability,
    refuse_foreign_input,
    refuse_nested,
    refuse_two_states,
    shown_as,
)
from ._layer_parameters import LayerParameters

# torch before 1.12 has no names for overloads.
_reshaped = getattr(torch.ops.aten._unsafe_view, "default", torch.ops.aten._unsafe_view)


@shown_as("LLTMSequence")
class LLTMSequenceBase(LayerParameters):
    """LLTM over whole sequences: layers and directions as nn.LSTM has them.

    L = num_layers, D = 2 if bidirectional else 1, T = steps, B = batch_size, I = input_size,
    H = hidden_size.

    Args:
        input_size: the number of values in each input, I
        hidden_size: the number of values in h and in the cell, H
        num_layers: how many layers, each on the output of the one before
        bias: whether there are biases
        batch_first: input and output are (B, T, ...) in place of (T, B, ...); states are not
        dropout: the probability with which a value of each layer's output but the last one's is
            zeroed, in training
        bidirectional: each layer also reads from the last step to the first; the output then has
            both directions' h side by side
        device, dtype: of the parameters, as in every module of torch.nn
        zoneout: a pair of probabilities (of h, of the cell): with it a unit keeps its old value in
            a step, in training. In evaluation nothing is random, and nothing is scaled.
        recompute: keep only inputs and outputs of each layer for backward, and one cell for every
            32 steps, and compute the rest again there: less memory for more time; the values are
            the same, but for rounding
        proj_size: 0, for code that gives nn.LSTM its default; there are no projections

    Parameters, for layer k from 0, in the layout of LLTM's own `weights` and `bias`:
        weights_l{k}: (3H, H + I), and (3H, H + D * H) from the second layer on
        bias_l{k}: (3H); absent with bias=False. A bias of (1, 3H) loads as it is.
        weights_l{k}_reverse, bias_l{k}_reverse: the same for the other direction

    Call it with input (T, B, I), (B, T, I) with batch_first, (T, I) without a batch, or a
    PackedSequence; and state, a pair (h0, c0) of tensors of (L * D, B, H), of (L * D, H) without a
    batch, or None for zeros. States come layer by layer, both directions of one together. It
    returns output, (h_n, c_n): output (T, B, D * H), laid out and packed as input is, and the
    states after the last step of each row, shaped like h0. Of a batch that is packed unsorted the
    states are in the batch's own order.

    What is random is drawn from PyTorch's generator of the device, layer by layer: first zoneout
    of h and of the cell, each direction in turn, then dropout.

    Raises:
        ValueError: a size is not a positive integer, a probability not in [0, 1], dtype not one of
            lltm_sequence's
        RuntimeError: a tensor of the wrong shape, dtype or device; the message names it
        TypeError: a flag is not a bool, proj_size not 0, input not a tensor, state not a pair of
            tensors
    """

    _sequence: Callable[..., Tuple[Tensor, Tensor, Tensor]]

    if TYPE_CHECKING:  # nn.Module's own tells nothing

        @overload
        def __call__(self, input: Tensor, state: Optional[State] = None) -> Tuple[Tensor, Pair]: ...
        @overload
        def __call__(
            self, input: PackedSequence, state: Optional[State] = None
        ) -> Tuple[PackedSequence, Pair]: ...
        def __call__(self, input: Any, state: Any = None) -> Any: ...

    def forward(
        self,
        input: Union[Tensor, PackedSequence],
        state: Optional[State] = None,
        *more: object,
    ) -> Tuple[Union[Tensor, PackedSequence], Pair]:
        if more:
            refuse_two_states(self, "(h0, c0)")
        if isinstance(input, PackedSequence):
            return self._forward_packed(input, state)
        if not isinstance(input, torch.Tensor):
            got = type(input).__name__
            raise TypeError(f"input must be a tensor or a PackedSequence, got {got}")
        refuse_nested("input", input)
        if input.dim() not in (2, 3):
            first = "batch_size, steps" if self.batch_first else "steps, batch_size"
            raise self._wrong_rank(
                input, "2 or 3", f"({first}, input_size), or (steps, input_size)"
            )
        self._check_features(input)
        if input.dim() == 2:
            return self._forward_unbatched(input, state)
        if self.batch_first:
            input = input.transpose(0, 1)
        state = self._checked(state, (input.size(1),))
        output, state = self._layers(input, input.size(1), state)
        return (output.transpose(0, 1) if self.batch_first else output), state

    def _forward_unbatched(self, input: Tensor, state: Optional[State]) -> Tuple[Tensor, Pair]:
        state = self._checked(state, ())
        if state is not None:
            state = [part.unsqueeze(1) for part in state]
        output, state = self._layers(input.unsqueeze(1), 1, state)
        h_n, c_n = (part.squeeze(1) for part in state)
        return output.squeeze(1), (h_n, c_n)

    def _forward_packed(
        self, input: PackedSequence, state: Optional[State]
    ) -> Tuple[PackedSequence, Pair]:
        data, batch_sizes, sorted_indices, unsorted_indices = input
        if data.dim() != 2:
            raise self._wrong_rank(data, "2", "(rows, input_size) in a PackedSequence")
        self._check_features(data)
        if batch_sizes.dim() != 1:
            raise RuntimeError(
                "lltm_decoupled: expected batch_sizes of a PackedSequence to be an int64 vector, "
                f"got shape {tuple(batch_sizes.shape)}"
            )
        if sorted_indices is not None:
            batch_size = sorted_indices.numel()
        elif state is not None and _is_compiling():
            # a trace has no values to look at; the operator checks them when it runs
            batch_size = pair(state, "h0, c0")[0].shape[-2]
        else:
            batch_size = first_size(batch_sizes)
        state = self._checked(state, (batch_size,))
        if state is not None and sorted_indices is not None:
            state = [part.index_select(1, sorted_indices) for part in state]
        output, (h_n, c_n) = self._layers(data, batch_size, state, batch_sizes)
        if unsorted_indices is not None:
            h_n, c_n = (part.index_select(1, unsorted_indices) for part in (h_n, c_n))
        packed = PackedSequence(output, batch_sizes, sorted_indices, unsorted_indices)
        return packed, (h_n, c_n)

    def _layers(
        self,
        input: Tensor,
        batch_size: int,
        state: Optional[State],
        batch_sizes: Optional[Tensor] = None,
    ) -> Tuple[Tensor, Pair]:
        """Time first or packed -> output, (h_n, c_n). The loop over the steps is the operator's."""
        zeros: Optional[Tensor] = None
        starts: Optional[List[Pair]] = None
        if state is not None:
            starts = list(zip(state[0].unbind(0), state[1].unbind(0)))
        elif batch_sizes is not None:  # then the operator wants a tensor
            zeros = input.new_zeros(batch_size, self.hidden_size)
        states: List[List[Tensor]] = []
        # Both can be set at any time.
        zoneout = probabilities("zoneout", self.zoneout)
        dropout = probability("dropout", self.dropout)
        for layer, suffixes in enumerate(self._suffixes()):
            if layer > 0 and dropout > 0:
                input = F.dropout(input, dropout, self.training)
            outputs = []
            for direction, suffix in enumerate(suffixes):
                masks = [self._zoneout_mask(p, input) for p in zoneout]
                weights, bias = self._cell_parameters(suffix)
                h0, c0 = (zeros, zeros) if starts is None else starts[len(states)]
                try:
                    output, *last = self._sequence(
                        input,
                        weights,
                        bias,
                        h0,
                        c0,
                        batch_sizes=batch_sizes,
                        reverse=direction == 1,
                        recompute=self.recompute,
                        zoneout_h=masks[0],
                        zoneout_c=masks[1],
                    )
                except RuntimeError:
                    if layer == 0:
                        refuse_foreign_input(input, weights)
                    raise
                outputs.append(output)
                states.append(last)
            input = outputs[0] if len(outputs) == 1 else torch.cat(outputs, -1)
        h_n, c_n = (_stacked(parts) for parts in zip(*states))
        return input, (h_n, c_n)

    def _zoneout_mask(self, probability: float, input: Tensor) -> Optional[Tensor]:
        if probability == 0 or not self.training:
            return None
        shape = (*input.shape[:-1], self.hidden_size)
        # A default dtype may be a half type, which has too few numbers for it.
        return torch.rand(shape, device=input.device, dtype=torch.float32) < probability

    def _wrong_rank(self, input: Tensor, expected: str, meaning: str) -> RuntimeError:
        return RuntimeError(
            f"lltm_decoupled: expected input to have {expected} dimensions {meaning}, "
            f"got shape {tuple(input.shape)}"
        )

    def _check_features(self, input: Tensor) -> None:
        # The operator checks them when a trace runs.
        if not is_tracing() and input.size(-1) != self.input_size:
            raise RuntimeError(
                "lltm_decoupled: expected input of input_size = "
                f"{counted(self.input_size, 'feature')}, "
                f"got {input.size(-1)} in shape {tuple(input.shape)}"
            )

    def _checked(self, state: Optional[State], batch: Tuple[int, ...]) -> Optional[State]:
        """(h0, c0), each (L * D, *batch, H); or None, which stands for zeros."""
        if state is None:
            return None
        state = pair(state, "h0, c0")
        expected = (self.num_layers * (2 if self.bidirectional else 1), *batch, self.hidden_size)
        for name, tensor in zip(("h0", "c0"), state):
            if not has_shape(tensor, expected):
                sizes = "batch_size, hidden_size" if batch else "hidden_size"
                raise RuntimeError(
                    f"lltm_decoupled: expected {name} of shape (num_layers * directions, {sizes}) "
                    f"= {expected}, got {tuple(tensor.shape)}"
                )
        return state


def _stacked(parts: Tuple[Tensor, ...]) -> Tensor:
    """torch.stack, of one tensor without a copy. No view: those cannot be detached in place."""
    stacks = len(parts) > 1 or is_tracing()  # a trace would keep the shape
    return torch.stack(parts) if stacks else _reshaped(parts[0], (1, *parts[0].shape))


def _is_compiling() -> bool:
    is_compiling = getattr(getattr(torch, "compiler", None), "is_compiling", None)  # torch 2.3
    return is_compiling is not None and is_compiling()

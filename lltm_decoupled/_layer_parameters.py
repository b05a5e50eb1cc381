"""The options and parameters of a layer: how they are checked, made and shown."""

import warnings
from typing import List, Optional, Sequence, SupportsIndex, Tuple

import torch
from torch import Tensor
from torch.types import Device

from ._arguments import flag, floating, integer, positive, probabilities, probability, shown_as
from ._module import LLTMParameters


@shown_as("LLTMSequence")
class LayerParameters(LLTMParameters):
    """What LLTMSequence holds; its arguments are described there."""

    def __init__(
        self,
        input_size: SupportsIndex,
        hidden_size: SupportsIndex,
        num_layers: SupportsIndex = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        proj_size: int = 0,
        device: Device = None,
        dtype: Optional[torch.dtype] = None,
        *,
        zoneout: Sequence[float] = (0.0, 0.0),
        recompute: bool = False,
    ) -> None:
        super().__init__()
        if integer(proj_size) != 0:
            raise TypeError(
                "LLTMSequence has no projections: proj_size is not supported, and must be 0, "
                f"got {proj_size!r}"
            )
        self.input_size = positive("input_size", input_size)
        self.hidden_size = positive("hidden_size", hidden_size)
        self.num_layers = positive("num_layers", num_layers)
        self.bias = flag("bias", bias)
        self.batch_first = flag("batch_first", batch_first)
        self.dropout = probability("dropout", dropout)
        self.bidirectional = flag("bidirectional", bidirectional)
        self.zoneout = probabilities("zoneout", zoneout)
        self.recompute = flag("recompute", recompute)
        if self.dropout > 0 and self.num_layers == 1:
            warnings.warn(
                "dropout is applied to the output of every layer but the last: "
                f"dropout={dropout} does nothing with num_layers=1",
                stacklevel=2,
            )
        factory = {"device": device, "dtype": floating("dtype", dtype)}
        width = self.input_size
        for suffixes in self._suffixes():
            for suffix in suffixes:
                self._add_cell(suffix, width, self.hidden_size, self.bias, factory)
            width = self.hidden_size * len(suffixes)
        self.reset_parameters()

    def _suffixes(self) -> List[List[str]]:
        """The ends of the parameters' names: for each layer a list, one for each direction."""
        ends = ("", "_reverse") if self.bidirectional else ("",)
        return [[f"_l{layer}{end}" for end in ends] for layer in range(self.num_layers)]

    def _cell_parameters(self, suffix: str) -> Tuple[Tensor, Optional[Tensor]]:
        """(weights, bias or None), looked up at each call: nothing is cached."""
        return self._parameter("weights" + suffix), self._parameter("bias" + suffix)

    @property
    def all_weights(self) -> List[List[Tensor]]:
        """A list for each layer and direction: its weights, and its bias where there is one."""
        cells = [self._cell_parameters(end) for ends in self._suffixes() for end in ends]
        return [[tensor for tensor in cell if tensor is not None] for cell in cells]

    def reset_parameters(self) -> None:
        """Draws every parameter from U(-1 / sqrt(hidden_size), 1 / sqrt(hidden_size))."""
        self._draw_parameters(self.hidden_size)

    def flatten_parameters(self) -> None:
        """Does nothing: nn.LSTM has it for cuDNN, and code that calls it works here too."""

    def extra_repr(self) -> str:
        parts = [str(self.input_size), str(self.hidden_size)]
        defaults = {
            "num_layers": 1,
            "bias": True,
            "batch_first": False,
            "dropout": 0,
            "bidirectional": False,
            "zoneout": (0, 0),
            "recompute": False,
        }
        for name, default in defaults.items():
            value = getattr(self, name)
            if value != default:
                parts.append(f"{name}={value}")
        return ", ".join(parts)

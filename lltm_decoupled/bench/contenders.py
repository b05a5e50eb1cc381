"""What is measured: our cell and layer, and what else a person could take in their place.

A cell is called as nn.LSTMCell is. A layer takes (steps, batch_size, input_features) and returns
the outputs of all steps. Modules are made on the CPU in float32 and moved, but for a library that
insists on a GPU.
"""

import importlib
from typing import Callable, NamedTuple, Optional

import torch
from torch import nn

import lltm_decoupled

from .. import reference


class Contender(NamedTuple):
    """A module to make, its gates, and whether its calls are replayed from a CUDA graph."""

    make: Callable[[int, int], nn.Module]  # of input_features, state_size
    gates: int = 3
    graph: bool = False
    missing: Callable[[torch.device], Optional[str]] = lambda device: None

    def why_missing(self, device):
        """None, or why it cannot be measured on this machine and device."""
        if self.graph and device.type != "cuda":
            return "CUDA graphs need a GPU"
        return self.missing(device)

    def in_graph(self):
        return self._replace(graph=True)


def compiled(function):
    """`function` through torch.compile, which keeps nothing of other sizes."""
    importlib.import_module("torch._dynamo").reset()
    return torch.compile(function, dynamic=False)


class CompiledCell(reference.LLTM):
    """The plain module, its formula compiled."""

    def __init__(self, input_features, state_size):
        super().__init__(input_features, state_size)
        self._cell = compiled(reference.lltm_cell)


class TutorialCell(reference.LLTM):
    """The tutorial's own extension, of the last version that holds LLTM."""

    @staticmethod
    def _cell(input, weights, bias, old_h, old_cell):
        from extension_cpp.ops import lltm

        return lltm(input, weights, bias.unsqueeze(0), old_h, old_cell)


class Layer(lltm_decoupled.LLTMSequence):
    def forward(self, input):
        return super().forward(input)[0]


class Loop(nn.Module):
    """A Python loop over a cell's module."""

    cell_type = reference.LLTM

    def __init__(self, input_size, hidden_size):
        super().__init__()
        self.cell = self.cell_type(input_size, hidden_size)

    def forward(self, input):
        h = c = input.new_zeros(input.shape[1], self.cell.state_size)
        outputs = []
        for x in input:
            h, c = self.cell(x, (h, c))
            outputs.append(h)
        return torch.stack(outputs)


class CompiledLoop(Loop):
    """The step is compiled. A loop of hundreds of steps would take minutes to compile."""

    cell_type = CompiledCell


class LSTM(nn.LSTM):
    def forward(self, input):
        return super().forward(input)[0]


class Haste(nn.Module):
    def __init__(self, input_size, hidden_size):
        super().__init__()
        self.layer = importlib.import_module("haste_pytorch").LSTM(input_size, hidden_size)

    def forward(self, input):
        return self.layer(input)[0]


class FlashRNN(nn.Module):
    """Its recurrence takes the products with the inputs, as (batch, steps, gates, heads, units)."""

    backend = "cuda_fused"

    def __init__(self, input_size, hidden_size):
        super().__init__()
        bound = hidden_size**-0.5
        self.inputs = nn.Linear(input_size, 4 * hidden_size, bias=False)
        self.weights = nn.Parameter(torch.empty(4, 1, hidden_size, hidden_size))
        self.bias = nn.Parameter(torch.empty(4, 1, hidden_size))
        for parameter in self.parameters():
            nn.init.uniform_(parameter, -bound, bound)

    def forward(self, input):
        flashrnn = importlib.import_module("flashrnn").flashrnn
        products = self.inputs(input.transpose(0, 1))
        products = products.view(*products.shape[:2], *self.bias.shape)
        dtype = str(input.dtype).replace("torch.", "")
        options = {"function": "lstm", "backend": self.backend, "dtype": dtype}
        states, _ = flashrnn(products, self.weights, self.bias, **options)
        return states[0]  # h of every step, (batch, steps, heads, units)


def _no_compiler(device):
    if not hasattr(torch, "compile"):
        return f"torch {torch.__version__} has no torch.compile"
    return None


def _unless_importable(name, needs_gpu=False):
    def missing(device):
        if needs_gpu and device.type != "cuda":
            return "needs a GPU"
        try:
            importlib.import_module(name)
        except Exception as error:  # an extension of another torch raises what it likes
            return f"cannot import {name}: {' '.join(str(error).split())[:120]}"
        return None

    return missing


CELLS = {
    "ours": Contender(lltm_decoupled.LLTM),
    "plain": Contender(reference.LLTM),
    "plain-compiled": Contender(CompiledCell, missing=_no_compiler),
    "LSTM": Contender(nn.LSTMCell, gates=4),
    "tutorial": Contender(TutorialCell, missing=_unless_importable("extension_cpp.ops")),
}
LAYERS = {
    "ours": Contender(Layer),
    "plain": Contender(Loop),
    "plain-compiled": Contender(CompiledLoop, missing=_no_compiler),
    "LSTM": Contender(LSTM, gates=4),
    "haste": Contender(Haste, gates=4, missing=_unless_importable("haste_pytorch", True)),
    "FlashRNN": Contender(FlashRNN, gates=4, missing=_unless_importable("flashrnn", True)),
}
for _contenders in (CELLS, LAYERS):
    for _name in ("ours", "plain", "LSTM", "tutorial"):
        if _name in _contenders:
            _contenders[_name + "-graph"] = _contenders[_name].in_graph()
CONTENDERS = {"cell": CELLS, "layer": LAYERS}
NAMES = list(dict.fromkeys([*CELLS, *LAYERS]))

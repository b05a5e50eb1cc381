"""A user's program that mypy --strict accepts. tests/test_typing.py holds that, and runs it."""

from typing import Any, Dict, List, Optional, Tuple

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence, pack_sequence

import lltm_decoupled
from lltm_decoupled import (
    LLTM,
    LLTMFunction,
    LLTMSequence,
    compat,
    lltm_cell,
    lltm_sequence,
    reference,
)


class Model(nn.Module):
    def __init__(self, symbols: int, hidden: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(symbols, 8)
        self.layer = LLTMSequence(
            8, hidden, num_layers=2, dropout=0.1, zoneout=(0.1, 0.0), dtype=torch.float32
        )
        self.readout = nn.Linear(hidden, symbols)

    def forward(
        self, text: Tensor, state: Optional[Tuple[Tensor, Tensor]] = None
    ) -> Tuple[Tensor, Tuple[Tensor, Tensor]]:
        output, state = self.layer(self.embedding(text), state)
        logits: Tensor = self.readout(output)
        return logits, state


def cells() -> Tensor:
    cell = LLTM(3, 4, bias=True, device="cpu")
    h, c = torch.zeros(2, 4), torch.zeros(2, 4)
    for x in torch.randn(5, 2, 3):
        h, c = cell(x, (h, c))
    h, c = cell(torch.randn(2, 3), [h, c])
    h, c = lltm_cell(torch.randn(2, 3), cell.weights, cell.bias, h, c)
    h, c = LLTMFunction.apply(torch.randn(2, 3), cell.weights, None, h, c)
    h, c = reference.lltm_cell(torch.randn(2, 3), cell.weights, None, h, c)
    return h + c + cell.input_features + cell.state_size


def sequences() -> List[Tensor]:
    layer = LLTMSequence(3, 4, bidirectional=True, recompute=True)
    output, (h_n, c_n) = layer(torch.randn(6, 2, 3))
    packed: PackedSequence
    packed, (h_n, c_n) = layer(pack_sequence([torch.randn(2, 3), torch.randn(1, 3)]))
    plain = reference.LLTMSequence(3, 4, bidirectional=True)
    plain.load_state_dict(layer.state_dict())
    output, (h_n, c_n) = plain(torch.randn(6, 2, 3), (h_n, c_n))
    weights, bias = layer.all_weights[0]
    return list(lltm_sequence(torch.randn(6, 2, 3), weights, bias, h_n[0], c_n[0], recompute=True))


def raw() -> List[Tensor]:
    weights, h, c = torch.randn(12, 7), torch.zeros(2, 4), torch.zeros(2, 4)
    values = lltm_decoupled.forward(torch.randn(2, 3), weights, torch.zeros(12), h, c)
    new_h, new_cell, i, o, candidate, X, gates = values
    gradients = lltm_decoupled.backward(h, c, new_cell, i, o, candidate, X, gates, weights)
    return gradients + compat.lltm_cpp.backward(h, c, new_cell, i, o, candidate, X, gates, weights)


def facts() -> Dict[str, Any]:
    return {"version": lltm_decoupled.__version__, **lltm_decoupled.build_info()}


def main() -> None:
    model = Model(11, 6)
    logits, state = model(torch.zeros(5, 2, dtype=torch.long))
    logits, state = model(torch.zeros(5, 2, dtype=torch.long), state)
    logits.sum().backward()
    cells().sum()
    sequences()
    raw()
    print(sorted(facts()))


if __name__ == "__main__":
    main()

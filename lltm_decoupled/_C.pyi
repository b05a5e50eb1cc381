from typing import Any

from torch import Tensor

def forward(
    input: Tensor,
    weights: Tensor,
    bias: Tensor | None,
    old_h: Tensor,
    old_cell: Tensor,
) -> list[Tensor]: ...
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
) -> list[Tensor]: ...
def build_info() -> dict[str, Any]: ...

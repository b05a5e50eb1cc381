"""What the cell's operators return for tensors without memory: meta tensors, and tracing.

And the checks that this needs, to which the formula is held too where there is no operator.
"""

from typing import Optional

import torch
from torch import Tensor

from ._arguments import is_autocast_on, is_tracing
from ._native import when_loaded

_DTYPES = (torch.float32, torch.float64, torch.float16, torch.bfloat16)


def check(condition, message):
    if not condition:
        raise RuntimeError("lltm_decoupled: " + message)


def check_dense(name, tensor):
    check(
        tensor.layout == torch.strided,
        f"expected {name} to be a dense tensor, got layout {tensor.layout}",
    )


def check_dtype(input):
    check_dense("input", input)
    check(
        input.dtype in _DTYPES,
        f"expected input of dtype float32, float64, float16 or bfloat16, got {input.dtype}",
    )


def check_rank(name, tensor, rank):
    check(tensor.dim() == rank, f"expected {name} to have {rank} dimensions, got {tensor.dim()}")


def check_parameters(input, weights, bias):
    """-> state_size; input's last dimension is input_features."""
    check_rank("weights", weights, 2)
    state_size = weights.shape[0] // 3
    check(
        weights.shape[0] == 3 * state_size and weights.shape[1] == state_size + input.shape[-1],
        "expected weights of shape (3 * state_size, state_size + input_features) with "
        f"input_features = {input.shape[-1]} as input has, got {tuple(weights.shape)}",
    )
    check_tensor("weights", weights, tuple(weights.shape), input)
    if bias is not None:
        expected = (1, 3 * state_size) if bias.dim() == 2 else (3 * state_size,)
        check_tensor("bias", bias, expected, input)
    return state_size


def check_tensor(name, tensor, shape, like, dtype=None):
    """`like` is input; so is its dtype, where no other one is expected."""
    check_dense(name, tensor)
    check(
        tensor.device == like.device,
        f"expected {name} on the device of input, {like.device}, got {tensor.device}",
    )
    got = tuple(tensor.shape)
    check(
        len(got) == len(shape) and all(a == b for a, b in zip(got, shape)),
        f"expected {name} of shape {shape}, got {got}",
    )
    of = "the dtype of input, " if dtype is None else "dtype "
    dtype = like.dtype if dtype is None else dtype
    check(tensor.dtype == dtype, f"expected {name} of {of}{dtype}, got {tensor.dtype}")


def can_check(input: Tensor) -> bool:
    """Autocast unites dtypes, and to torch.jit.trace sizes are tensors."""
    return not is_autocast_on(input.device.type) and not is_tracing()


def wanted_gradients(tensors, output_mask):
    return tuple(
        tensor.new_empty(tensor.shape) if wanted and tensor is not None else None
        for wanted, tensor in zip(output_mask, tensors)
    )


def check_cell(
    input: Tensor, weights: Tensor, bias: Optional[Tensor], old_h: Tensor, old_cell: Tensor
) -> None:
    check_dtype(input)
    check_rank("input", input, 2)
    state_size = check_parameters(input, weights, bias)
    for name, tensor in (("old_h", old_h), ("old_cell", old_cell)):
        check_tensor(name, tensor, (input.shape[0], state_size), input)


def check_tutorial_backward(
    new_cell: Tensor, X: Tensor, gate_weights: Tensor, weights: Tensor, **others: Tensor
) -> None:
    check_rank("new_cell", new_cell, 2)
    check_rank("X", X, 2)
    batch_size, state_size = new_cell.shape
    for name, tensor in others.items():
        check_tensor(name, tensor, (batch_size, state_size), new_cell)
    check_tensor("X", X, (batch_size, X.shape[1]), new_cell)
    check_tensor("gate_weights", gate_weights, (batch_size, 3 * state_size), new_cell)
    check_tensor("weights", weights, (3 * state_size, X.shape[1]), new_cell)


def _cell(input, weights, bias, old_h, old_cell):
    check_cell(input, weights, bias, old_h, old_cell)
    shape = (input.shape[0], weights.shape[0] // 3)
    return input.new_empty(shape), input.new_empty(shape)


def _cell_forward(input, weights, bias, old_h, old_cell):
    new_h, new_cell = _cell(input, weights, bias, old_h, old_cell)
    return new_h, new_cell, input.new_empty((input.shape[0], weights.shape[0]))


def _cell_backward(grad_h, grad_cell, input, weights, bias, old_h, new_cell, gates, output_mask):
    check_cell(input, weights, bias, old_h, new_cell)
    check_tensor("gates", gates, (input.shape[0], weights.shape[0]), input)
    for name, grad in (("grad_h", grad_h), ("grad_cell", grad_cell)):
        if grad is not None:
            check_tensor(name, grad, tuple(new_cell.shape), input)
    return wanted_gradients((input, weights, bias, old_h, new_cell), output_mask)


_libraries = []  # held for as long as the process lives: the registrations end with the objects


def register(functions):
    """Registers {operator: its shape function} once the operators exist.

    torch before 1.12 has no place for them.
    """
    if hasattr(torch, "library"):
        when_loaded(lambda: _libraries.append(_register(functions)))


def _register(functions):
    library = torch.library.Library("lltm_decoupled", "IMPL")
    # Without it torch takes one device for all of a call's tensors, and batch_sizes is on the CPU.
    fake = getattr(torch.library, "register_fake", getattr(torch.library, "impl_abstract", None))
    for name, function in functions.items():
        if fake is None:
            library.impl(name, function, "Meta")
        else:
            fake("lltm_decoupled::" + name, function, lib=library)
    return library


register({"cell": _cell, "_cell_forward": _cell_forward, "_cell_backward": _cell_backward})

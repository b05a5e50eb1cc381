"""What the operators return for tensors without memory: meta tensors, and tracing."""

import torch

from . import _native  # noqa: F401  (the operators must exist first)

_DTYPES = (torch.float32, torch.float64, torch.float16, torch.bfloat16)


def _check(condition, message):
    if not condition:
        raise RuntimeError("lltm_decoupled: " + message)


def _check_cell(input, weights, bias, old_h, old_cell):
    _check(
        input.dtype in _DTYPES,
        f"expected input of dtype float32, float64, float16 or bfloat16, got {input.dtype}",
    )
    _check(input.dim() == 2, f"expected input to have 2 dimensions, got {input.dim()}")
    _check(weights.dim() == 2, f"expected weights to have 2 dimensions, got {weights.dim()}")
    batch_size, input_features = input.shape
    state_size = weights.shape[0] // 3
    _check(
        weights.shape[0] == 3 * state_size and weights.shape[1] == state_size + input_features,
        "expected weights of shape (3 * state_size, state_size + input_features) with "
        f"input_features = {input_features} as input has, got {tuple(weights.shape)}",
    )
    if bias is not None:
        expected = (1, 3 * state_size) if bias.dim() == 2 else (3 * state_size,)
        _check_tensor("bias", bias, expected, input)
    for name, tensor in (("old_h", old_h), ("old_cell", old_cell)):
        _check_tensor(name, tensor, (batch_size, state_size), input)
    _check_tensor("weights", weights, tuple(weights.shape), input)


def _check_tensor(name, tensor, shape, like):
    _check(
        tensor.device == like.device,
        f"expected {name} on the device of input, {like.device}, got {tensor.device}",
    )
    got = tuple(tensor.shape)
    _check(
        len(got) == len(shape) and all(a == b for a, b in zip(got, shape)),
        f"expected {name} of shape {shape}, got {got}",
    )
    _check(
        tensor.dtype == like.dtype,
        f"expected {name} of the dtype of input, {like.dtype}, got {tensor.dtype}",
    )


def _cell(input, weights, bias, old_h, old_cell):
    _check_cell(input, weights, bias, old_h, old_cell)
    shape = (input.shape[0], weights.shape[0] // 3)
    return input.new_empty(shape), input.new_empty(shape)


def _cell_forward(input, weights, bias, old_h, old_cell):
    new_h, new_cell = _cell(input, weights, bias, old_h, old_cell)
    return new_h, new_cell, input.new_empty((input.shape[0], weights.shape[0]))


def _cell_backward(grad_h, grad_cell, input, weights, bias, old_h, new_cell, gates, output_mask):
    _check_cell(input, weights, bias, old_h, new_cell)
    _check_tensor("gates", gates, (input.shape[0], weights.shape[0]), input)
    for name, grad in (("grad_h", grad_h), ("grad_cell", grad_cell)):
        if grad is not None:
            _check_tensor(name, grad, tuple(new_cell.shape), input)
    tensors = (input, weights, bias, old_h, new_cell)
    return tuple(
        tensor.new_empty(tensor.shape) if wanted and tensor is not None else None
        for wanted, tensor in zip(output_mask, tensors)
    )


def register():
    """Registers the shape functions; torch before 1.12 has no place for them."""
    if not hasattr(torch, "library"):
        return None
    library = torch.library.Library("lltm_decoupled", "IMPL")
    for function in (_cell, _cell_forward, _cell_backward):
        name = "cell" if function is _cell else function.__name__
        library.impl(name, function, "Meta")
    return library


# Held for as long as the process lives: the registrations end with the object.
_library = register()

"""What the sequence's operators return for tensors without memory: meta tensors, and tracing."""

from typing import Optional, Tuple

import torch
from torch import Tensor

from ._shapes import (
    check,
    check_dtype,
    check_parameters,
    check_rank,
    check_tensor,
    register,
    wanted_gradients,
)

_STEPS_PER_CHUNK = 32  # kStepsPerChunk of bindings/sequence.h


def check_sequence(
    input: Tensor,
    weights: Tensor,
    bias: Optional[Tensor],
    h0: Optional[Tensor],
    c0: Optional[Tensor],
    batch_sizes: Optional[Tensor],
    zoneout_h: Optional[Tensor],
    zoneout_c: Optional[Tensor],
) -> Tuple[Tuple[int, ...], Tuple[int, int]]:
    """-> the shapes of the output and of a state. The values of batch_sizes may not exist: only the
    kernels see them.
    """
    check_dtype(input)
    check_rank("input", input, 3 if batch_sizes is None else 2)
    packed = batch_sizes is not None
    given = packed or h0 is not None or c0 is not None
    check(
        not given or (h0 is not None and c0 is not None),
        f"expected {'h0' if h0 is None else 'c0'} to be a tensor, as "
        f"{'batch_sizes' if packed else 'the other state'} is given, got None",
    )
    if h0 is not None:
        check_rank("h0", h0, 2)
    state_size = check_parameters(input, weights, bias)
    batch_size = h0.shape[0] if packed and h0 is not None else input.shape[1]
    state_shape = (batch_size, state_size)
    for name, tensor in (("h0", h0), ("c0", c0)):
        if tensor is not None:
            check_tensor(name, tensor, state_shape, input)
    if batch_sizes is not None:
        check(
            # Without values only what has none can be computed.
            (batch_sizes.device.type == "cpu" or batch_sizes.is_meta and input.is_meta)
            and batch_sizes.dtype == torch.int64
            and batch_sizes.dim() == 1,
            "expected batch_sizes to be an int64 vector on the CPU, got dtype "
            f"{batch_sizes.dtype}, shape {tuple(batch_sizes.shape)}, on {batch_sizes.device}",
        )
    shape = tuple(input.shape[:-1]) + (state_size,)
    for name, mask in (("zoneout_h", zoneout_h), ("zoneout_c", zoneout_c)):
        if mask is not None:
            check_tensor(name, mask, shape, input, torch.bool)
    return shape, state_shape


def check_batch_sizes(batch_sizes: Tensor, input: Tensor, h0: Tensor) -> None:
    """Their values."""
    sizes = [h0.shape[0], *batch_sizes.tolist()]
    for step, (before, size) in enumerate(zip(sizes, sizes[1:])):
        check(
            0 < size <= before,
            "expected batch_sizes to be positive and to never grow, from at most the batch_size "
            f"of h0, {h0.shape[0]}, got {size} at step {step}",
        )
    first = sizes[:2][-1]  # without steps there is none that could disagree
    check(
        first == sizes[0],
        f"expected batch_sizes to begin with the batch_size of h0, {sizes[0]}, got {first}",
    )
    check(
        sum(sizes[1:]) == input.shape[0],
        f"expected batch_sizes to sum to the rows of input, {input.shape[0]}, got {sum(sizes[1:])}",
    )


def _sequence(
    input,
    weights,
    bias,
    h0=None,
    c0=None,
    batch_sizes=None,
    reverse=False,
    recompute=False,
    zoneout_h=None,
    zoneout_c=None,
):
    arguments = (input, weights, bias, h0, c0, batch_sizes, zoneout_h, zoneout_c)
    output, state = check_sequence(*arguments)
    return input.new_empty(output), input.new_empty(state), input.new_empty(state)


def _kept(input, weights, batch_size, batch_sizes, recompute):
    """(shape, dtype) of what the forward half keeps for backward: of activations and of cells."""
    state_size = weights.shape[0] // 3
    if not recompute:
        rows = input.shape[0] if batch_sizes is not None else input.shape[0] * input.shape[1]
        return ((rows, 3 * state_size), input.dtype), ((rows, state_size), input.dtype)
    steps = (input if batch_sizes is None else batch_sizes).shape[0]
    chunks = (steps + _STEPS_PER_CHUNK - 1) // _STEPS_PER_CHUNK
    # in the type they are computed in: float32 for half types
    dtype = torch.float64 if input.dtype == torch.float64 else torch.float32
    return ((0, 3 * state_size), input.dtype), ((chunks, batch_size, state_size), dtype)


def _sequence_forward(
    input, weights, bias, h0, c0, batch_sizes, reverse, recompute, zoneout_h, zoneout_c
):
    masks = {"zoneout_h": zoneout_h, "zoneout_c": zoneout_c}
    outputs = _sequence(input, weights, bias, h0, c0, batch_sizes, **masks)
    kept = _kept(input, weights, outputs[1].shape[0], batch_sizes, recompute)
    return outputs + tuple(input.new_empty(shape, dtype=dtype) for shape, dtype in kept)


def _sequence_backward(
    grad_output,
    grad_h_n,
    grad_c_n,
    input,
    weights,
    bias,
    h0,
    c0,
    output,
    activations,
    cells,
    batch_sizes,
    reverse,
    recompute,
    zoneout_h,
    zoneout_c,
    output_mask,
):
    arguments = (input, weights, bias, h0, c0, batch_sizes, zoneout_h, zoneout_c)
    shape, state_shape = check_sequence(*arguments)
    grads = {
        "grad_output": (grad_output, shape),
        "grad_h_n": (grad_h_n, state_shape),
        "grad_c_n": (grad_c_n, state_shape),
    }
    for name, (grad, expected) in grads.items():
        if grad is not None:
            check_tensor(name, grad, expected, input)
    check_tensor("output", output, shape, input)
    kept = zip(
        ("activations", "cells"),
        (activations, cells),
        _kept(input, weights, state_shape[0], batch_sizes, recompute),
    )
    for name, tensor, (expected, dtype) in kept:
        check_tensor(name, tensor, expected, input, dtype)
    return wanted_gradients((input, weights, bias, h0, c0), output_mask)


register(
    {
        "sequence": _sequence,
        "_sequence_forward": _sequence_forward,
        "_sequence_backward": _sequence_backward,
    }
)

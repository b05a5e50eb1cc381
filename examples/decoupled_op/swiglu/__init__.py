"""SwiGLU, the gated activation: silu(gate) * value, as one operator of PyTorch."""

import torch

from . import _C  # noqa: F401  (its import registers the operators)

__all__ = ["formula", "swiglu"]


def swiglu(input):
    """silu(gate) * value, for input = [gate, value] of (..., 2 * width) -> (..., width).

    float32 or float64, of any strides. Differentiable twice and more often.
    """
    return torch.ops.swiglu.swiglu(input)


def formula(input):
    """The same in plain PyTorch: the definition, and what the tests compare with."""
    gate, value = input.chunk(2, dim=-1)
    return torch.nn.functional.silu(gate) * value


@torch.library.register_fake("swiglu::swiglu")
def _(input):
    torch._check(input.shape[-1] % 2 == 0, lambda: f"expected (..., 2 * width), got {input.shape}")
    return input.new_empty((*input.shape[:-1], input.shape[-1] // 2))


@torch.library.register_fake("swiglu::swiglu_backward")
def _(grad_output, input):
    return input.new_empty(input.shape)


def _save(ctx, inputs, output):
    ctx.save_for_backward(*inputs)


def _backward(ctx, grad_output):
    (input,) = ctx.saved_tensors
    if torch.is_grad_enabled():  # create_graph=True: the kernel has no derivative, the formula has
        with torch.enable_grad():
            own = input.view_as(input)  # at the input itself autograd would run its hooks
            return torch.autograd.grad(formula(own), own, grad_output, create_graph=True)[0]
    return torch.ops.swiglu.swiglu_backward(grad_output, input)


torch.library.register_autograd("swiglu::swiglu", _backward, setup_context=_save)

"""A Function with a plain number among its arguments, and no work for gradients that are absent.

It teaches: `ctx.set_materialize_grads(False)`, and what backward then meets.

    python examples/mul_constant.py
"""

import torch


class MulConstant(torch.autograd.Function):
    """tensor * constant; the constant is a number and has no gradient."""

    @staticmethod
    def forward(ctx, tensor, constant):
        # Without this an output that the loss does not depend on costs a tensor of zeros, and a
        # product with it.
        ctx.set_materialize_grads(False)
        ctx.constant = constant  # a number may be kept on ctx; a tensor may not
        return tensor * constant

    @staticmethod
    def backward(ctx, grad_output):
        if grad_output is None:  # "not there" now arrives as None, which cannot be multiplied
            return None, None
        return grad_output * ctx.constant, None


class PlusAndMinus(torch.autograd.Function):
    """(a + b, a - b): with two outputs one of them is often not used."""

    @staticmethod
    def forward(ctx, a, b):
        ctx.set_materialize_grads(False)
        return a + b, a - b

    @staticmethod
    def backward(ctx, grad_plus, grad_minus):
        PlusAndMinus.seen = [grad is not None for grad in (grad_plus, grad_minus)]
        if grad_minus is None:
            return grad_plus, grad_plus
        if grad_plus is None:
            return grad_minus, -grad_minus
        return grad_plus + grad_minus, grad_plus - grad_minus


class Blocked(torch.autograd.Function):
    """The identity, whose backward sends nothing on."""

    @staticmethod
    def forward(ctx, tensor):
        return tensor.clone()

    @staticmethod
    def backward(ctx, grad_output):
        return None


def main():
    x = torch.randn(4, dtype=torch.float64, requires_grad=True)
    y = torch.randn(4, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(MulConstant.apply, (x, 3.0))
    assert torch.autograd.gradgradcheck(MulConstant.apply, (x, 3.0))
    print("MulConstant: gradcheck and gradgradcheck are right")

    Blocked.apply(MulConstant.apply(x, 3.0)).sum().backward()
    assert x.grad is None
    print("MulConstant: a gradient that is not there stays None")

    assert torch.autograd.gradcheck(PlusAndMinus.apply, (x, y))
    for used in (0, 1):
        PlusAndMinus.apply(x, y)[used].sum().backward()
        assert PlusAndMinus.seen == [used == 0, used == 1]
    print("PlusAndMinus: only the gradient of the output that was used arrived")


if __name__ == "__main__":
    main()

"""x cubed, with a value that forward computes and backward needs, and derivatives of any order.

It teaches: an intermediate that is saved has to be an output of the Function, or the second
derivative is silently wrong.

    python examples/cube.py
"""

import torch


class CubeFunction(torch.autograd.Function):
    """(x^3, 3 x^2): the second output is the slope, which backward uses as it is."""

    @staticmethod
    def forward(ctx, x):
        slope = 3 * x**2
        ctx.save_for_backward(x, slope)
        return x**3, slope

    @staticmethod
    def backward(ctx, grad_cube, grad_slope):
        x, slope = ctx.saved_tensors
        # As an output the slope knows that it was made from x. In the second derivative a gradient
        # arrives for it: grad_slope, which has to be passed on to x.
        return grad_cube * slope + grad_slope * 6 * x


class HiddenSlope(torch.autograd.Function):
    """The slip: the slope is no output, so backward takes it for a constant."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(3 * x**2)
        return x**3

    @staticmethod
    def backward(ctx, grad_output):
        (slope,) = ctx.saved_tensors
        return grad_output * slope


def cube(x):
    return CubeFunction.apply(x)[0]


def derivatives(function, x, count):
    """The value and `count` derivatives at x."""
    values = [function(x)]
    for _ in range(count):
        if not values[-1].requires_grad:
            values.append(torch.zeros_like(x))
            continue
        values.append(torch.autograd.grad(values[-1].sum(), x, create_graph=True)[0])
    return [round(value.item(), 9) for value in values]


def main():
    x = torch.tensor([2.0], dtype=torch.float64, requires_grad=True)
    right = derivatives(cube, x, 3)
    print("x^3 at 2 and its three derivatives:   ", right)
    assert right == [8.0, 12.0, 12.0, 6.0]

    wrong = derivatives(HiddenSlope.apply, x, 2)
    print("with a slope that autograd cannot see:", wrong)
    assert wrong[:2] == right[:2] and wrong[2] != right[2]

    many = torch.randn(5, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(cube, many)
    assert torch.autograd.gradgradcheck(cube, many)
    # gradcheck alone passes for the slip too: it is the second derivative that is wrong
    assert torch.autograd.gradcheck(HiddenSlope.apply, many)
    assert not torch.autograd.gradgradcheck(HiddenSlope.apply, many, raise_exception=False)
    print("gradgradcheck finds the slip; gradcheck alone does not")


if __name__ == "__main__":
    main()

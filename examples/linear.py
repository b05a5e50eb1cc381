"""An autograd Function with several inputs, a module around it, and a network of such modules.

It teaches: what to save, which gradients to compute, and how gradcheck proves them.

    python examples/linear.py
"""

import torch
from torch import nn


class LinearFunction(torch.autograd.Function):
    """output = input @ weight.T + bias, for input of (..., in_features)."""

    @staticmethod
    def forward(ctx, input, weight, bias=None):
        # Tensors go through save_for_backward. On ctx itself they would escape the check for
        # changes in place, and an output kept there would never be freed.
        ctx.save_for_backward(input, weight)
        ctx.has_bias = bias is not None
        output = input.matmul(weight.t())
        return output if bias is None else output + bias

    @staticmethod
    def backward(ctx, grad_output):
        input, weight = ctx.saved_tensors
        d_input = d_weight = d_bias = None
        if ctx.needs_input_grad[0]:
            d_input = grad_output.matmul(weight)
        # grad_output.t().mm(input) and grad_output.sum(0) are right for a matrix only: with more
        # dimensions in front the first raises, and the second has the wrong shape.
        rows = grad_output.reshape(-1, grad_output.shape[-1])
        if ctx.needs_input_grad[1]:
            d_weight = rows.t().mm(input.reshape(-1, input.shape[-1]))
        # needs_input_grad is as long as the call was: of apply(input, weight) it has no third.
        if ctx.has_bias and ctx.needs_input_grad[2]:
            d_bias = rows.sum(0)
        return d_input, d_weight, d_bias  # one for each argument of forward


class Linear(nn.Module):
    """nn.Linear with our Function: the same parameters, the same state dict."""

    def __init__(self, in_features, out_features, bias=True):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(out_features, in_features))
        # Without a bias the name is registered too, so that self.bias is None and not an error.
        self.register_parameter("bias", nn.Parameter(torch.empty(out_features)) if bias else None)
        bound = in_features**-0.5
        for parameter in self.parameters():
            nn.init.uniform_(parameter, -bound, bound)

    def forward(self, input):
        return LinearFunction.apply(input, self.weight, self.bias)

    def extra_repr(self):
        out_features, in_features = self.weight.shape
        return f"{in_features}, {out_features}, bias={self.bias is not None}"


class DNN(nn.Module):
    """Two hidden layers of our Linear."""

    def __init__(self, in_features, hidden, out_features):
        super().__init__()
        self.layers = nn.Sequential(
            Linear(in_features, hidden),
            nn.ReLU(),
            Linear(hidden, hidden),
            nn.ReLU(),
            Linear(hidden, out_features),
        )

    def forward(self, input):
        return self.layers(input)


def main():
    torch.manual_seed(0)
    # gradcheck compares with differences of the function itself: float64 only, float32 is too
    # coarse for them.
    input = torch.randn(2, 3, 4, dtype=torch.float64, requires_grad=True)
    weight = torch.randn(2, 4, dtype=torch.float64, requires_grad=True)
    bias = torch.randn(2, dtype=torch.float64, requires_grad=True)
    for arguments in ((input, weight, bias), (input, weight), (input[0], weight, bias)):
        assert torch.autograd.gradcheck(LinearFunction.apply, arguments)
        assert torch.autograd.gradgradcheck(LinearFunction.apply, arguments)
    print("gradcheck and gradgradcheck: right, with and without bias, with more dimensions")

    ours, theirs = Linear(4, 3), nn.Linear(4, 3)
    ours.load_state_dict(theirs.state_dict())
    sample = torch.randn(7, 4)
    torch.testing.assert_close(ours(sample), theirs(sample))

    model = DNN(4, 32, 1)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    inputs = torch.randn(256, 4)
    targets = inputs.prod(1, keepdim=True)
    losses = []
    for _ in range(200):
        loss = (model(inputs) - targets).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < 0.2 * losses[0]
    print(f"loss of the network: {losses[0]:.3f} before, {losses[-1]:.3f} after 200 steps")


if __name__ == "__main__":
    main()

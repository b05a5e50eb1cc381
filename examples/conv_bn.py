"""A convolution and a batch norm as one Function that keeps one large tensor less for backward.

It teaches: recompute in backward what is cheap to compute and large to keep. The two layers apart
keep the convolution's output for the batch norm's backward; here backward convolves again.

    python examples/conv_bn.py
"""

import torch
import torch.nn.functional as F
from torch import nn

CHANNELS = (0, 2, 3)  # everything but the channels


def per_channel(vector):
    return vector[None, :, None, None]


class ConvBatchNorm(torch.autograd.Function):
    """batch_norm(conv2d(input, weight)) in training mode -> output, mean, variance."""

    @staticmethod
    def forward(ctx, input, weight, gamma, beta, eps, stride, padding):
        conv = F.conv2d(input, weight, stride=stride, padding=padding)
        mean = conv.mean(CHANNELS)
        # The batch norm of torch.nn divides by the root of (variance + eps), with the variance
        # over N. The unbiased one, or eps beside the root, makes another layer: existing weights
        # would no longer compute what they were trained for.
        variance = conv.var(CHANNELS, unbiased=False)
        inverse = (variance + eps).rsqrt()
        ctx.save_for_backward(input, weight, gamma, mean, inverse)  # conv itself is not kept
        ctx.geometry = {"stride": stride, "padding": padding}
        ctx.mark_non_differentiable(mean, variance)
        output = conv.sub_(per_channel(mean)).mul_(per_channel(inverse * gamma))
        return output.add_(per_channel(beta)), mean, variance

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, grad_output, _mean, _variance):
        input, weight, gamma, mean, inverse = ctx.saved_tensors
        with torch.enable_grad():  # autograd knows the convolution's gradients; we need no formula
            leaves = [tensor.detach().requires_grad_() for tensor in (input, weight)]
            conv = F.conv2d(*leaves, **ctx.geometry)
        normal = (conv.detach() - per_channel(mean)) * per_channel(inverse)
        d_beta = grad_output.sum(CHANNELS)
        d_gamma = (grad_output * normal).sum(CHANNELS)
        # mean and variance are functions of the batch: each takes its part of the gradient away
        count = normal.numel() // normal.shape[1]
        d_conv = grad_output - per_channel(d_beta / count)
        d_conv = (d_conv - normal * per_channel(d_gamma / count)) * per_channel(gamma * inverse)
        d_input, d_weight = torch.autograd.grad(conv, leaves, d_conv)
        return d_input, d_weight, d_gamma, d_beta, None, None, None


class ConvBatchNorm2d(nn.Module):
    """nn.Sequential(nn.Conv2d(..., bias=False), nn.BatchNorm2d(...)) with its parameters."""

    def __init__(self, in_channels, out_channels, kernel_size, stride=1, padding=0):
        super().__init__()
        self.conv = nn.Conv2d(in_channels, out_channels, kernel_size, stride, padding, bias=False)
        self.norm = nn.BatchNorm2d(out_channels)

    def forward(self, input):
        conv, norm = self.conv, self.norm
        if not self.training:
            # The running statistics are constants. A backward that still takes them for functions
            # of the batch would be wrong here; PyTorch's own layers need no memory to spare.
            return norm(conv(input))
        parameters = (conv.weight, norm.weight, norm.bias, norm.eps, conv.stride, conv.padding)
        output, mean, variance = ConvBatchNorm.apply(input, *parameters)
        with torch.no_grad():  # running statistics do use the unbiased variance
            count = output.numel() // output.shape[1]
            norm.running_mean.lerp_(mean, norm.momentum)
            norm.running_var.lerp_(variance * (count / (count - 1)), norm.momentum)
            norm.num_batches_tracked += 1
        return output


def kept_bytes(model, input):
    """The bytes that autograd keeps for backward, each memory block once, parameters apart."""
    blocks = {}

    def pack(tensor):
        blocks[tensor.data_ptr()] = tensor.numel() * tensor.element_size()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        output = model(input)
    for parameter in model.parameters():
        blocks.pop(parameter.data_ptr(), None)
    assert output.requires_grad
    return sum(blocks.values())


def peak_bytes(model, input):
    """The most GPU memory in use at a time, in forward and backward, above the arguments."""
    for _ in range(2):  # the first time libraries make what they keep
        model.zero_grad()
        before = torch.cuda.memory_allocated()
        torch.cuda.reset_peak_memory_stats()
        model(input).sum().backward()
    return torch.cuda.max_memory_allocated() - before


def report(name, measure, device, blocks=12):
    """Prints what `blocks` times convolution, batch norm and ReLU take; -> (apart, fused)."""

    def apart():
        return nn.Sequential(nn.Conv2d(16, 16, 3, 1, 1, bias=False), nn.BatchNorm2d(16))

    def fused():
        return ConvBatchNorm2d(16, 16, 3, padding=1)

    input = torch.randn(8, 16, 64, 64, device=device)
    sizes = []
    for block in (apart, fused):
        layers = [layer for _ in range(blocks) for layer in (block(), nn.ReLU(inplace=True))]
        sizes.append(measure(nn.Sequential(*layers).to(device), input) / 2**20)
    print(f"{name}: {sizes[0]:.1f} MiB as two layers, {sizes[1]:.1f} MiB fused")
    return sizes


def main():
    torch.manual_seed(0)
    shapes = ((2, 2, 3, 4), (2, 2, 2, 2), (2,), (2,))
    tensors = [torch.randn(shape, dtype=torch.float64, requires_grad=True) for shape in shapes]
    for stride, padding in ((1, 0), (2, 1)):
        assert torch.autograd.gradcheck(
            lambda *tensors, geometry=(stride, padding): ConvBatchNorm.apply(
                *tensors, 1e-3, *geometry
            )[0],
            tensors,
        )
    print("gradcheck: right")

    ours = ConvBatchNorm2d(3, 8, 3, padding=1).double()
    theirs = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1, bias=False), nn.BatchNorm2d(8)).double()
    theirs.load_state_dict(dict(zip(theirs.state_dict(), ours.state_dict().values())))
    for training in (True, True, False):
        batch = torch.randn(4, 3, 10, 10, dtype=torch.float64)
        values = []
        for model in (ours, theirs):
            model.train(training).zero_grad()
            output = model(batch)
            output.square().sum().backward()
            values.append([output, *(p.grad for p in model.parameters()), *model.buffers()])
        for actual, expected in zip(*values):
            torch.testing.assert_close(actual, expected)
    print("Conv2d and BatchNorm2d: the same outputs, gradients and running statistics")

    two, one = report("kept for backward", kept_bytes, "cpu")
    assert one < 0.55 * two
    if torch.cuda.is_available():
        report("peak on the GPU", peak_bytes, "cuda")


if __name__ == "__main__":
    main()

"""What the tests of sequences share: drawing inputs, losses, comparing with the reference loop."""

import contextlib
import functools

import torch
from helpers import INPUTS as CELL_INPUTS
from helpers import assert_close, draw, each, exact, leaves

from lltm_decoupled import lltm_sequence, reference

INPUTS = CELL_INPUTS[:3] + ("h0", "c0")
OUTPUTS = ("output", "h_n", "c_n")


def draw_sequence(target, steps=4, batch_size=5, input_features=3, state_size=4, bias="vector"):
    """The five inputs of a sequence, all sizes different by default; as helpers.draw makes them."""
    _, *others = draw(target, batch_size, input_features, state_size, bias)
    input = torch.randn(steps, batch_size, input_features, dtype=torch.float64)
    return [input.to(target.device, target.dtype), *others]


def ragged(steps, batch_size):
    """batch_sizes of rows that end at different steps: one lasts to the end, at least one does not.

    (steps = 4, batch_size = 5: 5, 4, 2, 1)
    """
    sizes = [max(1, batch_size * (steps - t) // steps) for t in range(steps)]
    return torch.tensor(sizes, dtype=torch.int64)


def pack(inputs, batch_sizes):
    """The same inputs with packed data: of each step the rows that it has."""
    rows = [step[:size] for step, size in zip(inputs[0], batch_sizes.tolist())]
    return [torch.cat(rows), *inputs[1:]]


def draw_masks(inputs, probability=0.4):
    """zoneout_h and zoneout_c, shaped like the output."""
    shape = (*inputs[0].shape[:-1], inputs[1].shape[0] // 3)
    masks = [(torch.rand(shape) < probability).to(inputs[0].device) for _ in "hc"]
    return dict(zip(("zoneout_h", "zoneout_c"), masks))


@functools.lru_cache(maxsize=64)
def loss_weights(shapes, dtype, device):
    """One random tensor a shape, the same in all dtypes and on all devices but for rounding."""
    generator = torch.Generator().manual_seed(11)
    drawn = (torch.randn(shape, generator=generator, dtype=torch.float64) for shape in shapes)
    return [weights.to(device, dtype) for weights in drawn]


def weighted(*used):
    """A loss: every value of the outputs named in `used`, with random weights."""

    def loss(outputs):
        shapes = tuple(output.shape for output in outputs)
        weights = loss_weights(shapes, outputs[0].dtype, outputs[0].device)
        named = zip(OUTPUTS, outputs, weights)
        return sum((output * factor).sum() for name, output, factor in named if name in used)

    return loss


LOSSES = {
    "all": weighted(*OUTPUTS),
    "output": weighted("output"),
    "last output": lambda outputs: outputs[0][-1].sum(),  # of packed data the last row
    "h_n": weighted("h_n"),
    "c_n": weighted("c_n"),
}


def evaluate(function, inputs, loss=LOSSES["all"], **options):
    """{name: tensor} of the outputs and of the gradients of all inputs ("d_input", ...)."""
    inputs = leaves(inputs)
    outputs = function(*inputs, **options)
    results = dict(zip(OUTPUTS, [output.detach() for output in outputs]))
    names = [name for name, t in zip(INPUTS, inputs) if t is not None]
    wanted = [t for t in inputs if t is not None]
    gradients = torch.autograd.grad(loss(outputs), wanted, allow_unused=True)
    for name, tensor, gradient in zip(names, wanted, gradients):
        # where no step used it the reference's gradient is undefined, which says zero
        gradient = torch.zeros_like(tensor) if gradient is None else gradient
        assert gradient.shape == tensor.shape, "d_" + name
        assert (gradient.dtype, gradient.device) == (tensor.dtype, tensor.device), "d_" + name
        results["d_" + name] = gradient
    return results


def assert_same_sequences(actual, expected, target, what=""):
    """Compare two results of `evaluate`, in the manner of helpers.assert_same_results.

    Sums widen atol by the root of their length. A state is a sum over the steps before it, and its
    gradient one over the steps behind it; those of weights and bias sum that over all rows. The
    products sum H + I, or 3H terms, which come to about one.
    """
    assert actual.keys() == expected.keys()
    shape = expected["output"].shape
    steps, rows = shape[0], shape[:-1].numel()  # packed data: of at least as many steps
    columns = expected["d_weights"].shape[1]
    products = max(1, max(columns, expected["d_weights"].shape[0]) / 100)
    for name, tensor in actual.items():
        terms = products * max(1, steps) * (rows if name in ("d_weights", "d_bias") else 1)
        assert_close(tensor, expected[name], target, f"{what} {name}", terms)


def check_sequence(target, inputs, loss="all", recompute=False, function=lltm_sequence, **options):
    """Outputs and gradients against the loop over the reference cell, in float64 on the CPU."""
    actual = evaluate(function, inputs, LOSSES[loss], recompute=recompute, **options)
    for name in OUTPUTS:
        assert actual[name].dtype == target.dtype, name
        assert actual[name].device == torch.device(target.device), name
    masks = {name: mask.cpu() for name, mask in options.items() if name.startswith("zoneout")}
    expected = evaluate(
        reference.lltm_sequence, exact(inputs), LOSSES[loss], **dict(options, **masks)
    )
    what = f"{loss}, recompute={recompute}, {sorted(options)}:"
    assert_same_sequences(actual, expected, target, what)


class Tf32Linear(torch.autograd.Function):
    """A product of factors rounded to TF32. Where that is allowed, PyTorch's own
    product of so few rows as a step has may still be one of float.
    """

    @staticmethod
    def forward(ctx, input, weight):
        input, weight = map(as_tf32, (input, weight))
        ctx.save_for_backward(input, weight)
        return input @ weight.t()

    @staticmethod
    def backward(ctx, grad):
        input, weight = ctx.saved_tensors
        grad = as_tf32(grad)
        return grad @ weight, grad.t() @ input


def as_tf32(tensor):
    bits = tensor.contiguous().view(torch.int32)
    return ((bits + 0x1000) & ~0x1FFF).view(torch.float32)


@contextlib.contextmanager
def linear_of_tf32():
    linear, torch.nn.functional.linear = torch.nn.functional.linear, Tf32Linear.apply
    try:
        yield
    finally:
        torch.nn.functional.linear = linear


def assert_errs_at_most_twice(draw_inputs, loss=LOSSES["all"], draws=3, tf32=False, **options):
    """Errors against float64 are at most twice those of PyTorch's own operations: the mean over all
    rows of some draws, for in one a difference may happen to grow.
    """
    ratios = {}
    for _ in range(draws):
        inputs = draw_inputs()
        exactly = evaluate(reference.lltm_sequence, each(torch.Tensor.double, inputs), loss)
        with linear_of_tf32() if tf32 else contextlib.nullcontext():
            plainly = evaluate(reference.lltm_sequence, inputs, loss)
        for name, actual in evaluate(lltm_sequence, inputs, loss, **options).items():
            pair = (t.double() - exactly[name] for t in (actual, plainly[name]))
            ours, eager = (row_norms(name, error) for error in pair)
            if inputs[0].dtype == torch.float64:  # the plain loop is the reference itself
                assert (ours <= 1e-10 * row_norms(name, exactly[name])).all(), name
            else:
                ratios.setdefault(name, []).append((ours / eager).log())
    means = {name: torch.cat(ratio).mean().exp().item() for name, ratio in ratios.items()}
    assert all(mean <= 2 for mean in means.values()), means


def row_norms(name, tensor):
    """Of each row of the batch; of a parameter's gradient, which sums them, one."""
    if name in ("d_weights", "d_bias"):
        return tensor.norm().view(1)
    return (tensor.transpose(0, 1).flatten(1) if tensor.dim() == 3 else tensor).norm(dim=1)


def away_from_the_kink(inputs, **options):
    """ELU's second derivative jumps at 0: finite differences must not step over it."""
    gates = []

    def watched(*arguments):
        input, weights, bias, old_h, _ = arguments
        sums = torch.cat([old_h, input], 1) @ weights.t() + (0 if bias is None else bias)
        gates.append(sums[:, 2 * old_h.size(1) :])
        return cell(*arguments)

    cell, reference.lltm_cell = reference.lltm_cell, watched
    try:
        reference.lltm_sequence(*each(lambda t: t.detach().double().cpu(), inputs), **options)
    finally:
        reference.lltm_cell = cell
    assert torch.cat(gates).abs().min() > 1e-3
    return inputs

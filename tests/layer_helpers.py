"""What the tests of the layer share: making one, and the loop over the cell that it must equal."""

import torch
from helpers import all_equal, assert_close, exact
from torch.nn.utils.rnn import PackedSequence

from lltm_decoupled import LLTMSequence, reference

NAN = float("nan")


def make(target, *sizes, **options):
    sizes = sizes or (3, 4)
    return LLTMSequence(*sizes, device=target.device, dtype=target.dtype, **options)


def flat(result):
    """[output, h_n, c_n] of a layer's result, of a packed output its data."""
    output, state = result
    return [output.data if isinstance(output, PackedSequence) else output, *state]


def same_results(first, second, call):
    return all_equal(flat(first(*call)), flat(second(*call)))


def draw_layer_call(module, steps=6, batch_size=5):
    """(input, (h0, c0)) in the order of steps, for a module of any options."""
    like = next(module.parameters())
    rows = module.num_layers * (2 if module.bidirectional else 1)
    shapes = [(steps, batch_size, module.input_size)] + [(rows, batch_size, module.hidden_size)] * 2
    input, *state = [torch.randn(s, dtype=torch.float64).to(like) for s in shapes]
    return input, tuple(state)


def exact_parameters(module):
    """{name: float64 CPU leaf} with the module's numbers."""
    names = [name for name, _ in module.named_parameters()]
    values = exact(module.parameters())
    return {name: value.requires_grad_() for name, value in zip(names, values)}


def loop_of_cells(module, parameters, input, state, lengths=None):
    """The layer row by row and step by step, with nothing but the reference cell.

    input is (T, B, I), lengths say how many steps of a row count. -> a list of the rows' outputs
    (length, D * H), and h_n, c_n of (L * D, B, H).
    """
    steps, batch_size, _ = input.shape
    ends = ("", "_reverse") if module.bidirectional else ("",)
    outputs, states = [], []
    for row, length in enumerate(lengths or [steps] * batch_size):
        values, finals = list(input[:length, row].unbind(0)), []
        for layer in range(module.num_layers):
            sides = []
            for end in ends:
                weights = parameters[f"weights_l{layer}{end}"]
                bias = parameters.get(f"bias_l{layer}{end}")
                h, c = (part[len(finals), row][None] for part in state)
                side = []
                for value in values[::-1] if end else values:
                    h, c = reference.lltm_cell(value[None], weights, bias, h, c)
                    side.append(h[0])
                finals.append((h[0], c[0]))
                sides.append(side[::-1] if end else side)
            values = [torch.cat(parts) for parts in zip(*sides)]
        outputs.append(torch.stack(values))
        states.append(finals)
    h_n, c_n = (
        torch.stack([torch.stack([s[i][part] for s in states]) for i in range(len(states[0]))])
        for part in range(2)
    )
    return outputs, h_n, c_n


def weigh(tensors):
    """A loss that gives every value a weight of its own."""
    generator = torch.Generator().manual_seed(3)
    total = 0
    for tensor in tensors:
        weights = torch.randn(tensor.shape, generator=generator, dtype=torch.float64)
        total = total + (tensor * weights.to(tensor)).sum()
    return total


def check_layer(module, rows_of, input, state, target, lengths=None):
    """Outputs, states and every gradient against the loop.

    rows_of(input, h0, c0) runs the module and gives the loop's values: a list of the rows' outputs,
    h_n, c_n; of an input in the order of steps.
    """
    leaves = [t.clone().requires_grad_() for t in (input, *state)]
    outputs, *finals = rows_of(*leaves)
    actual = [*outputs, *finals]
    others = [t.requires_grad_() for t in exact([input, *state])]
    parameters = exact_parameters(module)
    rows, *states = loop_of_cells(module, parameters, others[0], others[1:], lengths)
    expected = [*rows, *states]
    for number, (tensor, value) in enumerate(zip(actual, expected)):
        assert tensor.shape == value.shape and tensor.dtype == target.dtype
        assert_close(tensor, value, target, f"output {number}", terms=len(input))
    wanted = [*leaves, *module.parameters()]
    gradients = torch.autograd.grad(weigh(actual), wanted)
    values = torch.autograd.grad(weigh(expected), [*others, *parameters.values()])
    for name, gradient, value in zip(["input", "h0", "c0", *parameters], gradients, values):
        # every layer adds its own roundings; weights sum them over all rows of all steps
        terms = 10 * module.num_layers * input[..., 0].numel()
        assert_close(gradient, value, target, f"d_{name}", terms)

"""What several test files share: drawing inputs, running the cell, comparing with the reference."""

import torch

import lltm_decoupled
from lltm_decoupled import reference

INPUTS = ("input", "weights", "bias", "old_h", "old_cell")
OUTPUTS = ("new_h", "new_cell")


def draw(target, batch_size=5, input_features=3, state_size=4, bias="vector"):
    """The five inputs of a cell; `bias` is "vector" (3H), "row" (1, 3H) or None.

    Drawn on the CPU in float64, so that every target gets the same numbers. All sizes differ by
    default: swapped sizes cannot hide. Weights are scaled so that the gates are of size about one.
    """

    def randn(*shape):
        return torch.randn(*shape, dtype=torch.float64)

    width = state_size + input_features
    values = [
        randn(batch_size, input_features),
        randn(3 * state_size, width) / max(1, width) ** 0.5,
        randn(1, 3 * state_size) if bias == "row" else randn(3 * state_size),
        randn(batch_size, state_size),
        randn(batch_size, state_size),
    ]
    values = [value.to(target.device, target.dtype) for value in values]
    return values if bias else values[:2] + [None] + values[3:]


def draw_grads(inputs):
    """Random weights of both outputs for the backward pass."""
    old_cell = inputs[4]
    return [torch.randn(old_cell.shape, dtype=torch.float64).to(old_cell) for _ in OUTPUTS]


def each(function, tensors):
    """`function` of every tensor; None (no bias) stays None."""
    return [None if t is None else function(t) for t in tensors]


def exact(tensors):
    """The same numbers as detached float64 CPU tensors."""
    return each(lambda t: t.detach().to("cpu", torch.float64), tensors)


def leaves(tensors):
    """The same memory and strides as fresh leaves that require a gradient."""
    return each(lambda t: t.detach().requires_grad_(), tensors)


def evaluate(function, inputs, grads):
    """{name: tensor} of both outputs and of the gradients of all five inputs ("d_input", ...)."""
    inputs = leaves(inputs)
    outputs = function(*inputs)
    names = [name for name, t in zip(INPUTS, inputs) if t is not None]
    wanted = [t for t in inputs if t is not None]
    gradients = torch.autograd.grad(outputs, wanted, grads)
    for name, tensor, gradient in zip(names, wanted, gradients):
        assert gradient.shape == tensor.shape, "d_" + name
        assert (gradient.dtype, gradient.device) == (tensor.dtype, tensor.device), "d_" + name
    results = dict(zip(OUTPUTS, [output.detach() for output in outputs]))
    results.update(("d_" + name, gradient) for name, gradient in zip(names, gradients))
    return results


def assert_close(actual, expected, target, what="", terms=1):
    """`terms`: length of a sum of terms of size about one; its size and error grow as sqrt."""
    if isinstance(expected, torch.Tensor):
        expected = expected.detach().to("cpu", torch.float64)
    else:
        expected = torch.tensor(expected, dtype=torch.float64)
    atol = target.atol * max(1, terms) ** 0.5
    actual = actual.detach().to("cpu", torch.float64)
    try:
        torch.testing.assert_close(actual, expected, rtol=target.rtol, atol=atol, equal_nan=True)
    except AssertionError as error:
        raise AssertionError(f"{what}: {error}") from None


def assert_same_results(actual, expected, target, batch_size):
    """Compare two results of `evaluate`.

    Two lengths of sums widen atol, each by its root, for so do independent roundings add up. The
    products sum H + I (forward) or 3H terms (backward), which come to about one; plain atol holds
    to 100 of them. The gradients of weights and bias sum over the batch, and do grow with it.
    """
    assert actual.keys() == expected.keys()
    state_size, input_features = expected["new_h"].size(1), expected["d_input"].size(1)
    products = max(1, max(state_size + input_features, 3 * state_size) / 100)
    for name, tensor in actual.items():
        terms = products * (max(1, batch_size) if name in ("d_weights", "d_bias") else 1)
        assert_close(tensor, expected[name], target, name, terms)


def check_against_reference(function, inputs, target, grads=None):
    """Both outputs and all gradients of `function` against the float64 CPU reference."""
    grads = draw_grads(inputs) if grads is None else grads
    actual = evaluate(function, inputs, grads)
    for name in OUTPUTS:
        assert actual[name].dtype == target.dtype
        assert actual[name].device == torch.device(target.device)
    expected = evaluate(reference.lltm_cell, exact(inputs), exact(grads))
    assert_same_results(actual, expected, target, inputs[0].size(0))


def plain_formula(input, weights, bias, old_h, old_cell):
    """The seven values of the raw `forward`, in its order, written out in plain PyTorch."""
    X = torch.cat([old_h, input], dim=1)
    gate_weights = X.mm(weights.t())
    if bias is not None:
        gate_weights = gate_weights + bias
    gates = gate_weights.chunk(3, dim=1)
    input_gate, output_gate = torch.sigmoid(gates[0]), torch.sigmoid(gates[1])
    candidate_cell = torch.nn.functional.elu(gates[2])
    new_cell = old_cell + candidate_cell * input_gate
    new_h = torch.tanh(new_cell) * output_gate
    return [new_h, new_cell, input_gate, output_gate, candidate_cell, X, gate_weights]


def tutorial_function(module):
    """`module.forward` and `module.backward` inside a Python Function, as the tutorial has it."""

    class TutorialFunction(torch.autograd.Function):
        @staticmethod
        def forward(ctx, input, weights, bias, old_h, old_cell):
            outputs = module.forward(input, weights, bias, old_h, old_cell)
            ctx.has_bias = bias is not None
            ctx.save_for_backward(*outputs[1:], weights)
            return outputs[0], outputs[1]

        @staticmethod
        def backward(ctx, grad_h, grad_cell):
            d_old_h, d_input, d_weights, d_bias, d_old_cell = module.backward(
                grad_h.contiguous(), grad_cell.contiguous(), *ctx.saved_tensors
            )[:5]
            return d_input, d_weights, d_bias if ctx.has_bias else None, d_old_h, d_old_cell

    return TutorialFunction.apply


def module_call(input, weights, bias, old_h, old_cell):
    """An LLTM module that computes with the given tensors, through which gradients flow."""
    module = lltm_decoupled.LLTM(
        input.size(-1), old_h.size(-1), bias is not None, device=input.device, dtype=input.dtype
    )
    for name, tensor in (("weights", weights), ("bias", bias)):
        module._parameters.pop(name)
        setattr(module, name, tensor)
    return module(input, (old_h, old_cell))


# Every public way to compute one step; all take the five inputs and return (new_h, new_cell).
CALLS = {
    "lltm_cell": lltm_decoupled.lltm_cell,
    "op": torch.ops.lltm_decoupled.cell,
    "LLTMFunction": lltm_decoupled.LLTMFunction.apply,
    "LLTM": module_call,
    "forward+backward": tutorial_function(lltm_decoupled),
}


def all_equal(first, second):
    """The same bits in two sequences of tensors."""
    return all(torch.equal(a, b) for a, b in zip(first, second))


def storage_pointer(tensor):
    """The address of the memory block that a tensor lies in (torch 2 renamed the accessor)."""
    storage = getattr(tensor, "untyped_storage", tensor.storage)()
    return storage.data_ptr()


def assert_fresh(outputs, others):
    """Outputs are contiguous and own their memory: no view of one another or of `others`."""
    blocks = [storage_pointer(t) for t in list(outputs) + [t for t in others if t is not None]]
    for position, output in enumerate(outputs):
        assert output.is_contiguous(), position
        assert output.storage_offset() == 0 and output._base is None, position
        assert blocks.count(blocks[position]) == 1, f"output {position} shares memory"

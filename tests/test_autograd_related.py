"""Backward passes that meet more than one call: arguments that depend on each other, hooks on
them, and gradients that come in as dual numbers."""

import warnings

import pytest
import torch
import torch.autograd.forward_ad as forward_ad
from helpers import assert_close, draw, exact, leaves
from sequence_helpers import draw_sequence

from lltm_decoupled import LLTM, LLTMSequence, lltm_cell, lltm_sequence, reference

# torch itself calls what it has deprecated for forward mode.
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning:torch.*")

# (input, weights, bias, h0, c0) -> the same, some made from others
RELATED = {
    "one tensor as both states": lambda x, w, b, h, c: (x, w, b, h, h),
    "c0 of h0": lambda x, w, b, h, c: (x, w, b, h, 2 * h),
    "h0 of the weights": lambda x, w, b, h, c: (x, w, b, w[:5, :4] * 1, c),
    "input of a state": lambda x, w, b, h, c: (x * h[..., :3], w, b, h, c),
    "all of the bias": lambda x, w, b, h, c: (x * b[0], w * b[1], b, h * b[2], c * b[3]),
}
FUNCTIONS = {
    "cell": (draw, lltm_cell, reference.lltm_cell),
    "sequence": (draw_sequence, lltm_sequence, reference.lltm_sequence),
}


def gradients(function, relate, inputs, create_graph):
    """Those of a first loss, and with create_graph those of their squares."""
    inputs = leaves(inputs)
    outputs = function(*relate(*inputs))
    loss = sum(output.square().sum() for output in outputs)
    first = torch.autograd.grad(loss, inputs, create_graph=create_graph, allow_unused=True)
    first = [torch.zeros_like(t) if g is None else g for g, t in zip(first, inputs)]
    if not create_graph:
        return first
    second = torch.autograd.grad(sum(g.square().sum() for g in first), inputs, allow_unused=True)
    second = [torch.zeros_like(t) if g is None else g for g, t in zip(second, inputs)]
    return [*first, *second]


@pytest.mark.parametrize("relation", RELATED)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_arguments_that_depend_on_each_other(name, relation, float64_target):
    make, function, plain = FUNCTIONS[name]
    inputs, relate = make(float64_target), RELATED[relation]
    expected = gradients(plain, relate, exact(inputs), create_graph=True)
    actual = gradients(function, relate, inputs, create_graph=True)
    for got, want in zip(actual, expected):
        torch.testing.assert_close(got.cpu(), want, rtol=1e-9, atol=1e-9)
    for got, want in zip(gradients(function, relate, inputs, create_graph=False), expected):
        torch.testing.assert_close(got.cpu(), want, rtol=1e-9, atol=1e-9)


def test_many_calls_in_a_chain(float64_target):
    """Each on the state of the one before: a gradient that went through them all in each would take
    twice as long with each call."""

    def run(layer, create_graph):
        state, total = None, 0
        for part in input.chunk(20):
            output, state = layer(part, state)
            total = total + output.square().sum()
        return torch.autograd.grad(total, list(layer.parameters()), create_graph=create_graph)

    target = float64_target
    layer = LLTMSequence(3, 4, num_layers=2, device=target.device, dtype=target.dtype)
    input = torch.randn(20, 2, 3, device=target.device, dtype=target.dtype)
    for got, want in zip(run(layer, True), run(layer, False)):
        torch.testing.assert_close(got, want)


def modules(target):
    options = {"device": target.device, "dtype": target.dtype}
    cell_input = torch.randn(5, 3, **options)
    return [
        (LLTM(3, 4, **options), cell_input),
        (LLTMSequence(3, 4, **options), cell_input.expand(2, 5, 3) * 1),
    ]


@pytest.mark.parametrize("create_graph", [False, True])
@pytest.mark.parametrize("index", [0, 1], ids=["cell", "sequence"])
def test_hooks_run_once(index, create_graph, float64_target):
    module, input = modules(float64_target)[index]
    x = input.requires_grad_() * 1
    plain = torch.autograd.grad(module(x)[0].sum(), [x, *module.parameters()])
    x.retain_grad()
    seen = []

    def halve(grad):
        seen.append(grad)
        return grad / 2

    for parameter in module.parameters():
        parameter.register_hook(halve)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of what create_graph with backward() holds
        module(x)[0].sum().backward(create_graph=create_graph)
    assert len(seen) == 2
    assert_close(x.grad, plain[0], float64_target)
    for parameter, grad in zip(module.parameters(), plain[1:]):
        assert_close(parameter.grad, grad / 2, float64_target)
        parameter.grad = None


@pytest.mark.skipif(
    not hasattr(torch.autograd.graph, "register_multi_grad_hook"),
    reason=f"torch {torch.__version__} has no register_multi_grad_hook",
)
def test_a_hook_of_many_gradients(float64_target):
    for module, input in modules(float64_target):
        seen = []
        handle = torch.autograd.graph.register_multi_grad_hook(
            list(module.parameters()), seen.append
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            module(input)[0].sum().backward(create_graph=True)
        handle.remove()
        assert len(seen) == 1


@pytest.mark.parametrize("create_graph", [False, True])
def test_gradients_that_are_dual(create_graph, float64_target):
    """A gradient is linear in those that come in: its tangent is the gradient of theirs."""
    for module, input in modules(float64_target):
        output = module(input)[0]
        wanted = list(module.parameters())
        primal, tangent = torch.randn_like(output), torch.randn_like(output)
        expected = torch.autograd.grad(output, wanted, tangent, retain_graph=True)
        with forward_ad.dual_level():
            dual = forward_ad.make_dual(primal, tangent)
            is_layer = isinstance(module, LLTMSequence)
            if is_layer and torch.__version__.startswith("1.11."):  # which cannot, and says so
                with pytest.raises(RuntimeError, match="elu_backward that does not support it"):
                    torch.autograd.grad(output, wanted, dual, create_graph=create_graph)
                continue
            results = torch.autograd.grad(output, wanted, dual, create_graph=create_graph)
            for result, want in zip(results, expected):
                assert result.requires_grad == create_graph
                assert_close(forward_ad.unpack_dual(result).tangent, want, float64_target)


@pytest.mark.skipif(not hasattr(torch, "func"), reason=f"torch {torch.__version__} has no func")
def test_a_jvp_of_gradients(float64_target):
    for module, input in modules(float64_target):
        output = module(input)[0]
        wanted = list(module.parameters())

        def pull(v, output=output, wanted=wanted):
            return torch.autograd.grad(output, wanted, v, retain_graph=True)

        primal, tangent = torch.randn_like(output), torch.randn_like(output)
        for got, want in zip(torch.func.jvp(pull, (primal,), (tangent,))[1], pull(tangent)):
            assert_close(got, want, float64_target)
        many = torch.randn(3, *output.shape, device=output.device, dtype=output.dtype)
        for i, got in enumerate(zip(*torch.func.vmap(pull)(many))):
            for one, want in zip(got, pull(many[i])):
                assert_close(one, want, float64_target)

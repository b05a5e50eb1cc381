"""The operators with an underscore, as others call them: graphs, hooks of saved tensors, vmap."""

import pytest
import torch
from helpers import assert_close, draw, evaluate
from sequence_helpers import draw_sequence

from lltm_decoupled import LLTM, LLTMSequence, lltm_cell, lltm_sequence

OPERATORS = torch.ops.lltm_decoupled
FUNCTIONS = {
    "cell": (draw, lltm_cell, {}),
    "sequence": (lambda target: draw_sequence(target, 40), lltm_sequence, {}),
    "recompute": (lambda target: draw_sequence(target, 40), lltm_sequence, {"recompute": True}),
}


def column_major(tensor):
    """Equal values with other strides."""
    return tensor.transpose(0, -1).contiguous().transpose(0, -1)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_hook_may_change_strides(name, target):
    make, function, options = FUNCTIONS[name]
    inputs = make(target)

    def call(*inputs):
        return function(*inputs, **options)[:2]

    grads = [torch.randn_like(output) for output in call(*inputs)]
    expected = evaluate(call, inputs, grads)
    with torch.autograd.graph.saved_tensors_hooks(column_major, lambda tensor: tensor):
        actual = evaluate(call, inputs, grads)
    for result, want in expected.items():
        assert_close(actual[result], want, target, result, terms=40)


@pytest.mark.parametrize("batch_size", (3, 300))  # by products of the core, and of ATen
@pytest.mark.parametrize("layer", (LLTM, LLTMSequence))
def test_graphs_of_make_fx_run(layer, batch_size, float64_target):
    """Forward, and with the gradients: their operators meet parameters that require some."""
    proxy_tensor = pytest.importorskip("torch.fx.experimental.proxy_tensor")
    target = float64_target
    module = layer(20, 70, device=target.device, dtype=target.dtype)
    shape = (batch_size, 20) if layer is LLTM else (5, batch_size, 20)
    input = torch.randn(*shape, device=target.device, dtype=target.dtype)

    def gradients(input):
        loss = module(input)[0].square().sum()
        return torch.autograd.grad(loss, list(module.parameters()))

    for function in (module, gradients):
        torch.testing.assert_close(proxy_tensor.make_fx(function)(input)(input), function(input))


def test_results_of_the_formula_are_new(float64_target):
    """As the schema says: also where a gradient is only passed on, or nothing comes in."""
    vmap = pytest.importorskip("torch.func").vmap
    inputs = draw(float64_target)
    gates = OPERATORS._cell_forward(*inputs)[2]
    grad_cell = torch.randn(3, *inputs[4].shape, dtype=inputs[0].dtype, device=inputs[0].device)

    def d_old_cell(grad_cell, old_h=inputs[3]):
        arguments = (*inputs[:3], old_h, inputs[4], gates, [True] * 5)
        return OPERATORS._cell_backward(None, grad_cell, *arguments)[4]

    before = grad_cell.clone()
    vmap(d_old_cell)(grad_cell).add_(5)
    assert torch.equal(grad_cell, before)
    h = inputs[3].expand(3, *inputs[3].shape)
    assert not vmap(lambda h: d_old_cell(None, h))(h).any()

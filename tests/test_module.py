"""LLTM as a module: the tutorial's names, and everything users do to modules."""

import copy
import math

import pytest
import torch
from helpers import INPUTS, all_equal, assert_close, draw, draw_grads, evaluate, exact
from torch import nn

from lltm_decoupled import LLTM, lltm_cell, reference


def make(target, bias=True):
    return LLTM(3, 4, bias=bias, device=target.device, dtype=target.dtype)


def draw_call(target):
    """(input, state) for the module of `make`."""
    input, _, _, old_h, old_cell = draw(target)
    return input, (old_h, old_cell)


def reference_twin(module):
    """The plain PyTorch module with the same numbers, float64 on the CPU."""
    twin = reference.LLTM(
        module.input_features, module.state_size, module.bias is not None, dtype=torch.float64
    )
    twin.load_state_dict(dict(zip(module.state_dict(), exact(module.state_dict().values()))))
    return twin


@pytest.mark.parametrize("bias", [True, False])
def test_state_dict_keys_and_shapes(bias, target):
    module = make(target, bias)
    shapes = {name: tuple(tensor.shape) for name, tensor in module.state_dict().items()}
    assert shapes == ({"weights": (12, 7), "bias": (12,)} if bias else {"weights": (12, 7)})
    assert [name for name, _ in module.named_parameters()] == list(shapes)
    expected = (target.dtype, torch.device(target.device))
    for parameter in module.parameters():
        assert parameter.requires_grad
        assert (parameter.dtype, parameter.device) == expected


def test_initial_values_follow_the_tutorial():
    """Uniform in +-1 / sqrt(state_size), weights and bias."""
    module = LLTM(50, 100)
    for parameter in module.parameters():
        assert parameter.abs().max() <= 0.1
        assert parameter.std().item() == pytest.approx(0.1 / math.sqrt(3), rel=0.2)


def test_same_seed_same_parameters_as_the_reference():
    torch.manual_seed(3)
    module = LLTM(3, 4)
    torch.manual_seed(3)
    assert all_equal(module.parameters(), reference.LLTM(3, 4).parameters())


def test_factory_arguments_and_moves(target):
    module = make(target)
    assert all_equal(module.to(target.device).parameters(), module.parameters())
    for other in (torch.float32, torch.float64):
        moved = copy.deepcopy(module).to(dtype=other)
        assert {p.dtype for p in moved.parameters()} == {other}
        new_h, _ = moved(torch.randn(2, 3, dtype=other, device=target.device))
        assert new_h.dtype == other


def test_default_dtype_is_torchs():
    assert LLTM(3, 4).weights.dtype == torch.get_default_dtype()
    assert LLTM(3, 4).weights.device.type == "cpu"


@pytest.mark.parametrize("bias", [True, False])
def test_module_is_the_cell_with_its_parameters(bias, target):
    module = make(target, bias)
    input, state = draw_call(target)
    assert all_equal(module(input, state), lltm_cell(input, module.weights, module.bias, *state))


@pytest.mark.parametrize("other_default", [torch.float32, torch.float64], ids=str)
def test_no_state_is_a_state_of_zeros(other_default, target):
    """Made with the input's dtype and device, whatever the defaults are."""
    module = make(target)
    input, (old_h, _) = draw_call(target)
    zeros = torch.zeros_like(old_h)
    expected = module(input, (zeros, zeros))
    before = torch.get_default_dtype()
    torch.set_default_dtype(other_default)
    try:
        assert all_equal(module(input), expected)
        assert all_equal(module(input, None), expected)
        assert all_equal(module(input, state=(zeros, zeros)), expected)
    finally:
        torch.set_default_dtype(before)


def test_eval_mode_changes_nothing_and_has_gradients(target):
    module = make(target)
    input, state = draw_call(target)
    grads = draw_grads([input, None, None, *state])

    def run():
        leaf = input.clone().requires_grad_()
        outputs = module(leaf, state)
        gradients = torch.autograd.grad(outputs, [leaf, *module.parameters()], grads)
        return outputs + gradients

    trained = run()
    module.eval()
    assert all_equal(run(), trained)


def test_tied_weights(target):
    """Two modules, one parameter: gradients add up, and a step moves both."""
    first, second = make(target), make(target)
    second.weights, second.bias = first.weights, first.bias
    input, state = draw_call(target)
    alone = torch.autograd.grad(first(input, state)[0].sum(), first.weights)[0]
    (first(input, state)[0].sum() + second(input, state)[0].sum()).backward()
    assert_close(first.weights.grad, 2 * alone, target)
    torch.optim.SGD(first.parameters(), lr=0.1).step()
    assert all_equal(first(input, state), second(input, state))


def test_new_parameters_are_used_at_once(target):
    """No flat copy of the weights: assigned, edited and parametrized ones all count."""
    module = make(target)
    call = draw_call(target)
    module.weights = nn.Parameter(torch.randn_like(module.weights))
    assert all_equal(module(*call), lltm_cell(call[0], module.weights, module.bias, *call[1]))
    with torch.no_grad():
        module.bias.add_(1)
    assert all_equal(module(*call), lltm_cell(call[0], module.weights, module.bias, *call[1]))


def test_parametrized_weights_train(target):
    class Doubled(nn.Module):
        def forward(self, weights):
            return 2 * weights

    module = make(target)
    call = draw_call(target)
    doubled = lltm_cell(call[0], 2 * module.weights.detach(), module.bias, *call[1])
    nn.utils.parametrize.register_parametrization(module, "weights", Doubled())
    outputs = module(*call)
    assert all_equal(outputs, doubled)
    outputs[0].sum().backward()
    assert module.parametrizations.weights.original.grad.any()


def test_functional_call(target):
    if hasattr(torch, "func"):
        from torch.func import functional_call
    else:
        stateless = pytest.importorskip("torch.nn.utils.stateless", reason="torch before 1.12")
        functional_call = stateless.functional_call
    module = make(target)
    values = draw(target)
    parameters = {"weights": values[1], "bias": values[2]}
    outputs = functional_call(module, parameters, (values[0], tuple(values[3:])))
    assert all_equal(outputs, lltm_cell(*values))


OPTIMIZERS = {
    "SGD": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9),
    "Adam": lambda p: torch.optim.Adam(p, lr=1e-3),
}


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_training_equals_the_reference_step_by_step(optimizer, bias, target):
    if optimizer == "Adam" and target.dtype == torch.float16:
        pytest.skip("Adam's eps of 1e-8 is 0 in float16: the reference module diverges too")
    module = make(target, bias)
    twin = reference_twin(module)
    optimizers = [OPTIMIZERS[optimizer](m.parameters()) for m in (module, twin)]
    # Adam divides by the root of the squared gradient: rounding of a gradient near zero becomes a
    # part of lr. Ten steps of lr = 1e-3 keep that below 100 times the tolerance of one cell.
    loose = target._replace(rtol=100 * target.rtol, atol=100 * target.atol)
    for step in range(10):
        call = draw_call(target)
        sequences = (call, (exact(call[:1])[0], tuple(exact(call[1]))))
        losses = []
        for model, step_optimizer, (input, state) in zip((module, twin), optimizers, sequences):
            for _ in range(3):
                state = model(input, state)
            loss = ((state[0] - 0.5) ** 2).mean() + state[1].mean()
            step_optimizer.zero_grad()
            loss.backward()
            step_optimizer.step()
            losses.append(loss)
        assert_close(losses[0], losses[1], loose, f"loss of step {step}")
        for (name, parameter), value in zip(module.named_parameters(), twin.parameters()):
            assert_close(parameter, value, loose, f"{name} after step {step}")


def test_gradients_reach_every_input_through_the_module(target):
    module = make(target)
    values = draw(target)
    with torch.no_grad():
        module.weights.copy_(values[1])
        module.bias.copy_(values[2])
    grads = draw_grads(values)
    expected = evaluate(reference.lltm_cell, exact(values), exact(grads))
    input, old_h, old_cell = (values[i].clone().requires_grad_() for i in (0, 3, 4))
    torch.autograd.backward(module(input, (old_h, old_cell)), grads)
    tensors = (input, module.weights, module.bias, old_h, old_cell)
    for name, tensor in zip(INPUTS, tensors):
        assert_close(tensor.grad, expected["d_" + name], target, name, terms=5)


@pytest.mark.parametrize("wrong", [0, -1, 2.5, "3", None, True])
@pytest.mark.parametrize("name", ["input_features", "state_size"])
def test_sizes_must_be_positive_integers(name, wrong):
    with pytest.raises((ValueError, TypeError), match=name):
        LLTM(**dict({"input_features": 3, "state_size": 4}, **{name: wrong}))


def test_repr_says_the_sizes():
    text = repr(LLTM(3, 4, bias=False))
    assert "3" in text and "4" in text and "bias=False" in text

"""compat.lltm_cpp and compat.lltm_cuda stand in for the tutorial's two compiled modules."""

import inspect
import sys

import pytest
import torch
from helpers import (
    assert_close,
    check_against_reference,
    draw,
    draw_grads,
    evaluate,
    exact,
    leaves,
    plain_formula,
    tutorial_function,
)
from torch.autograd import gradcheck

from lltm_decoupled import LLTMFunction, compat

# module, and the length of what backward returns: there lltm_cuda gives d_gates too
MODULES = {"lltm_cpp": 5, "lltm_cuda": 6}


@pytest.fixture(params=MODULES)
def name(request):
    return request.param


def gate_gradients(inputs, grads):
    """d_gates (B, 3H) of the plain formula: what autograd sends into the gate pre-activations."""
    with torch.enable_grad():
        outputs = plain_formula(*leaves(exact(inputs)))
        return torch.autograd.grad(outputs[:2], outputs[6], exact(grads))[0]


@pytest.mark.parametrize("bias", ["vector", "row"])
def test_values(name, bias, target):
    module = getattr(compat, name)
    inputs = draw(target, bias=bias)
    outputs = module.forward(*inputs)
    assert isinstance(outputs, list) and len(outputs) == 7
    expected = plain_formula(*exact(inputs))
    for position, (tensor, value) in enumerate(zip(outputs, expected)):
        assert tensor.device == torch.device(target.device)
        assert_close(tensor, value, target, f"forward value {position}")

    grads = draw_grads(inputs)
    d_values = module.backward(*grads, *outputs[1:], inputs[1])
    assert isinstance(d_values, list) and len(d_values) == MODULES[name]
    expected = evaluate(lambda *t: plain_formula(*t)[:2], exact(inputs), exact(grads))
    for position, d_name in enumerate(("old_h", "input", "weights", "bias", "old_cell")):
        value = expected["d_" + d_name]
        if d_name == "bias":
            value = value.reshape(1, -1)  # always (1, 3H)
        assert d_values[position].shape == value.shape, d_name
        assert_close(d_values[position], value, target, "d_" + d_name, terms=5)
    if name == "lltm_cuda":
        d_gates = d_values[5].reshape(inputs[0].size(0), -1)
        assert_close(d_gates, gate_gradients(inputs, grads), target, "d_gates")


@pytest.mark.parametrize("bias", ["vector", "row"])
def test_in_the_tutorials_function(name, bias, target):
    function = tutorial_function(getattr(compat, name))
    check_against_reference(function, draw(target, bias=bias), target)


def test_expanded_output_gradients(name, target):
    """(new_h + new_cell).sum().backward() hands over one element with stride 0."""
    inputs = draw(target)
    module = getattr(compat, name)
    one = torch.ones((), dtype=target.dtype, device=target.device).expand(5, 4)
    outputs = module.forward(*inputs)
    expanded = module.backward(one, one, *outputs[1:], inputs[1])
    packed = module.backward(one.contiguous(), one.contiguous(), *outputs[1:], inputs[1])
    assert all(torch.equal(a, b) for a, b in zip(expanded, packed))


@pytest.mark.parametrize("bias", ["vector", "row"])
def test_gradcheck_with_the_tutorials_sizes(name, bias, float64_target):
    inputs = draw(float64_target, batch_size=3, input_features=17, state_size=5, bias=bias)
    assert gradcheck(tutorial_function(getattr(compat, name)), leaves(inputs))


def test_training_with_the_tutorials_module(name, target):
    """Its parameters: weights (3H, H + I) and a bias row (1, 3H); one optimizer step moves both."""
    _, weights, bias, old_h, old_cell = draw(target, bias="row")
    parameters = leaves([weights.clone(), bias.clone()])
    before = [p.clone() for p in parameters]
    optimizer = torch.optim.SGD(parameters, lr=0.1)
    new_h, new_cell = tutorial_function(getattr(compat, name))(
        draw(target)[0], *parameters, old_h, old_cell
    )
    (new_h.sum() + new_cell.sum()).backward()
    optimizer.step()
    for old, new in zip(before, parameters):
        assert new.shape == old.shape
        assert not torch.equal(old, new)


def test_signatures_are_positional_and_named_as_in_the_tutorial(name, target):
    module = getattr(compat, name)
    inputs = draw(target)
    by_name = dict(zip(("input", "weights", "bias", "old_h", "old_cell"), inputs))
    outputs = module.forward(**by_name)
    assert all(torch.equal(a, b) for a, b in zip(outputs, module.forward(*inputs)))
    names = "new_cell input_gate output_gate candidate_cell X gate_weights".split()
    grads = dict(zip(("grad_h", "grad_cell"), draw_grads(inputs)))
    saved = dict(zip(names, outputs[1:]), weights=inputs[1])
    assert len(module.backward(**grads, **saved)) == MODULES[name]
    assert inspect.getdoc(module.forward) and inspect.getdoc(module.backward)


@pytest.mark.parametrize("is_compiled", [True, False])
def test_what_is_called_in_place_of_its_functions(is_compiled, monkeypatch):
    if not is_compiled:
        monkeypatch.delitem(sys.modules, "lltm_decoupled._C")
    raw = "{0}.forward(...) or {0}.backward(...)"
    for called, hint in (
        (LLTMFunction, "LLTMFunction.apply(...)"),
        (compat.lltm_cpp, raw.format("lltm_cpp")),
        (compat.lltm_cuda, raw.format("lltm_cuda")),
    ):
        for arguments, options in (((), {}), ((torch.ones(2),), {}), ((), {"input": 1})):
            with pytest.raises(TypeError) as caught:
                called(*arguments, **options)
            assert str(caught.value) == f"{called.__name__} is not called itself: call {hint}"

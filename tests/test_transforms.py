"""Function transforms: torch.func, forward mode, batches of gradients, and all of them nested."""

import warnings

import pytest
import torch
from helpers import (
    INPUTS,
    all_equal,
    assert_close,
    check_against_reference,
    draw,
    draw_grads,
    evaluate,
    exact,
    leaves,
)
from torch.autograd import forward_ad, gradcheck, gradgradcheck

from lltm_decoupled import LLTM, lltm_cell, reference

has_func = hasattr(torch, "func")
needs_func = pytest.mark.skipif(not has_func, reason=f"torch {torch.__version__} has no torch.func")
BIASES = ("vector", "row", None)
# torch itself calls what it has deprecated for forward mode, and warns of its own linearize.
pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning:torch.*"),
    pytest.mark.filterwarnings("ignore::UserWarning:torch.fx.*"),
]
STATES, WEIGHTS, ALL = (0, None, None, 0, 0), (None, 0, 0, None, None), (0, 0, 0, 0, 0)


def stacked(samples, dims):
    """The inputs of all samples at once; what is not mapped is the first sample's."""
    return [
        samples[0][i] if dim is None else torch.stack([sample[i] for sample in samples], dim)
        for i, dim in enumerate(dims)
    ]


def sample_of(inputs, dims, number):
    return [
        t if t is None or dim is None else t.select(dim, number) for t, dim in zip(inputs, dims)
    ]


@pytest.mark.parametrize("bias", BIASES)
def test_gradcheck_of_every_kind(bias, float64_target):
    """Reverse, forward, batches of both, undefined gradients, and forward over reverse."""
    inputs = leaves(draw(float64_target, 2, 2, 3, bias=bias))
    kinds = {"check_undefined_grad": True, "check_forward_ad": True}
    if has_func:  # before, these run by vmap without rules
        kinds.update(check_batched_grad=True, check_batched_forward_grad=True)
    assert gradcheck(lltm_cell, inputs, **kinds)
    second = {"check_batched_grad": True, "check_fwd_over_rev": True} if has_func else {}
    assert gradgradcheck(lltm_cell, inputs, **second)


@needs_func
def test_func_grad(target):
    """The same gradients as autograd, of every argument."""
    inputs = draw(target)
    grads = draw_grads(inputs)

    def loss(*tensors):
        return sum((output * grad).sum() for output, grad in zip(lltm_cell(*tensors), grads))

    actual = torch.func.grad(loss, argnums=tuple(range(5)))(*inputs)
    expected = evaluate(reference.lltm_cell, exact(inputs), exact(grads))
    for name, tensor in zip(INPUTS, actual):
        assert_close(tensor, expected["d_" + name], target, name, terms=5)


@needs_func
@pytest.mark.parametrize("bias", BIASES)
@pytest.mark.parametrize("dims", [STATES, WEIGHTS, ALL, (1, None, None, 1, 2)], ids=str)
def test_vmap(dims, bias, target, capfd):
    """Seven samples at once equal a loop over them, and no loop is what is done."""
    samples = [draw(target, bias=bias) for _ in range(7)]
    if bias is None:
        dims = (dims[0], dims[1], None, *dims[3:])
    inputs = stacked(samples, dims)
    actual = torch.func.vmap(lltm_cell, in_dims=dims)(*inputs)
    for number in range(7):
        one = sample_of(inputs, dims, number)
        for output, expected in zip(actual, reference.lltm_cell(*exact(one))):
            assert_close(output[number], expected, target, f"sample {number}")
    assert "performance drop" not in capfd.readouterr().err


@needs_func
def test_backward_through_vmap(target):
    """Autograd outside of vmap: the samples' gradients of the shared weights add up."""
    samples = [draw(target) for _ in range(3)]
    inputs = leaves(stacked(samples, STATES))
    outputs = torch.func.vmap(lltm_cell, in_dims=STATES)(*inputs)
    grads = [torch.randn_like(output) for output in outputs]
    actual = torch.autograd.grad(outputs, inputs, grads)
    others = leaves(exact(inputs))
    loops = [reference.lltm_cell(*sample_of(others, STATES, number)) for number in range(3)]
    stacks = [torch.stack(outputs) for outputs in zip(*loops)]
    for name, tensor, value in zip(
        INPUTS, actual, torch.autograd.grad(stacks, others, exact(grads))
    ):
        assert_close(tensor, value, target, "d_" + name, terms=15)  # three samples of five rows


@needs_func
def test_functionalize(target):
    inputs = draw(target)
    assert all_equal(torch.func.functionalize(lltm_cell)(*inputs), lltm_cell(*inputs))


@needs_func
@pytest.mark.parametrize("sizes", [(0, 3, 4), (1, 1, 1)], ids=str)
@pytest.mark.parametrize("samples", [0, 3])
def test_vmap_of_hostile_sizes(samples, sizes, target):
    inputs = stacked([draw(target, *sizes)] * 3, STATES)
    inputs = [t if dim is None else t[:samples] for t, dim in zip(inputs, STATES)]
    new_h, new_cell = torch.func.vmap(lltm_cell, in_dims=STATES)(*inputs)
    assert new_h.shape == new_cell.shape == (samples, sizes[0], sizes[2])


@needs_func
def test_vmap_checks_its_samples(target):
    """The sizes of a sample, not of the whole, are what an error speaks of."""
    inputs = draw(target)
    inputs[3] = torch.zeros(7, 5, 9, dtype=target.dtype, device=target.device)
    with pytest.raises(RuntimeError, match=r"old_h.*5, 4.*5, 9"):
        torch.func.vmap(lltm_cell, in_dims=(None, None, None, 0, None))(*inputs)
    inputs[3] = inputs[3][0, :, :4]
    assert lltm_cell(*inputs)[0].shape == (5, 4)


@needs_func
def test_per_sample_gradients(target):
    """vmap(grad(functional_call)): each sample's gradient of the module's parameters."""
    module = LLTM(3, 4, device=target.device, dtype=target.dtype)
    parameters = {name: p.detach() for name, p in module.named_parameters()}
    input, _, _, old_h, old_cell = draw(target)

    def loss(parameters, *sample):  # unbatched, as one sample is
        new_h, new_cell = torch.func.functional_call(module, parameters, (sample[0], sample[1:]))
        return (new_h * new_cell).sum()

    per_sample = torch.func.vmap(torch.func.grad(loss), in_dims=(None, 0, 0, 0))
    actual = per_sample(parameters, input, old_h, old_cell)
    for row in range(5):
        one = exact([input[row : row + 1], *parameters.values(), old_h[row : row + 1]])
        one = leaves([*one, exact([old_cell])[0][row : row + 1]])
        new_h, new_cell = reference.lltm_cell(*one)
        expected = torch.autograd.grad((new_h * new_cell).sum(), one[1:3])
        for name, value in zip(parameters, expected):
            assert_close(actual[name][row], value, target, f"{name} of sample {row}")


@needs_func
@pytest.mark.parametrize("transform", ["jacrev", "jacfwd"])
def test_jacobians(transform, target):
    inputs = draw(target, batch_size=2)
    jacobian = getattr(torch.func, transform)
    for argument, name in enumerate(INPUTS):
        actual = jacobian(lltm_cell, argument)(*inputs)
        expected = torch.func.jacrev(reference.lltm_cell, argument)(*exact(inputs))
        for tensor, value in zip(actual, expected):
            assert_close(tensor, value, target, name)


@needs_func
def test_hessian(target):
    inputs = draw(target, batch_size=2)

    def second(function, tensors):
        return torch.func.hessian(lambda x: function(x, *tensors[1:])[0].sum())(tensors[0])

    expected = second(reference.lltm_cell, exact(inputs))
    # a product of five factors of size one, summed over the gates
    assert_close(second(lltm_cell, inputs), expected, target, terms=12)


@pytest.mark.parametrize("create_graph", [False, True])
@pytest.mark.parametrize("used", ["new_h", "new_cell", "both"])
def test_batches_of_gradients(used, create_graph, target, capfd):
    """autograd.grad(is_grads_batched=True), of one output or both, equals one call for each."""
    inputs = leaves(draw(target))
    outputs = lltm_cell(*inputs)
    outputs = {"new_h": outputs[:1], "new_cell": outputs[1:], "both": outputs}[used]
    grads = tuple(torch.stack([draw_grads(inputs)[0] for _ in range(3)]) for _ in outputs)
    options = {"retain_graph": True, "create_graph": create_graph}
    with warnings.catch_warnings():
        if not has_func:
            warnings.simplefilter("ignore")  # torch 1 has no rule of ours and loops, with a warning
        batch = torch.autograd.grad(outputs, inputs, grads, is_grads_batched=True, **options)
    for number in range(3):
        one = torch.autograd.grad(outputs, inputs, [g[number] for g in grads], **options)
        for name, actual, expected in zip(INPUTS, batch, one):
            assert actual.requires_grad == expected.requires_grad, name
            assert_close(actual[number], expected, target, "d_" + name, terms=5)
    assert not has_func or "performance drop" not in capfd.readouterr().err


@pytest.mark.parametrize("dual", range(5), ids=INPUTS)
def test_forward_mode(dual, target):
    """Dual numbers, which every supported torch has: the tangent is the reference's."""
    inputs, tangents = draw(target), draw(target)
    results = []
    for function, values, directions in (
        (lltm_cell, inputs, tangents),
        (reference.lltm_cell, exact(inputs), exact(tangents)),
    ):
        with forward_ad.dual_level():
            values = list(values)
            values[dual] = forward_ad.make_dual(values[dual], directions[dual])
            pairs = [forward_ad.unpack_dual(output) for output in function(*values)]
            results.append([t for pair in pairs for t in pair])
    for actual, expected in zip(*results):
        assert actual is not None, "the tangent was dropped without an error"
        assert_close(actual, expected, target)


@needs_func
def test_jvp_and_linearize(target):
    inputs, tangents = tuple(draw(target)), tuple(draw(target))
    primal, tangent = torch.func.jvp(lltm_cell, inputs, tangents)
    expected = torch.func.jvp(reference.lltm_cell, tuple(exact(inputs)), tuple(exact(tangents)))
    for actual, value in zip((*primal, *tangent), (*expected[0], *expected[1])):
        assert_close(actual, value, target)
    if hasattr(torch.func, "linearize"):
        output, push = torch.func.linearize(lltm_cell, *inputs)
        for actual, value in zip((*output, *push(*tangents)), (*expected[0], *expected[1])):
            assert_close(actual, value, target)


@needs_func
def test_transforms_leave_plain_calls_alone(target):
    """After a transform the cell is the compiled kernel again, to the bit."""
    inputs = draw(target)
    before = lltm_cell(*inputs)
    torch.func.vmap(lltm_cell, in_dims=STATES)(*stacked([inputs, inputs], STATES))
    torch.func.jvp(lltm_cell, tuple(inputs), tuple(inputs))
    assert all_equal(lltm_cell(*inputs), before)
    check_against_reference(lltm_cell, inputs, target)

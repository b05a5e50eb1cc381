"""Calls that nobody thought of: drawn shapes, layouts and mistakes, held to the same two rules.

A legal call equals the float64 reference. An illegal one raises an error that names an argument,
and a legal call after it works.
"""

import pytest
import torch
from conftest import TARGETS, why_missing, why_unsupported
from helpers import (
    INPUTS,
    OUTPUTS,
    assert_close,
    check_against_reference,
    draw,
    draw_grads,
    each,
    exact,
)

import lltm_decoupled
from lltm_decoupled import lltm_cell, reference

hypothesis = pytest.importorskip("hypothesis", reason="hypothesis is not installed")
from hypothesis import strategies as st  # noqa: E402

USABLE = [
    target
    for target in TARGETS
    if why_missing(target.device) is None
    and not (target.device == "cpu" and why_unsupported(target.dtype))
]
# The same examples in every run: a failure is never a matter of luck, and needs no database.
same_every_run = hypothesis.settings(
    derandomize=True, database=None, deadline=None, max_examples=150, print_blob=False
)

sizes = st.one_of(st.integers(0, 9), st.sampled_from([31, 33, 65]))


def with_layout(tensor, layout, offset):
    """The same numbers in memory laid out otherwise, starting `offset` elements into a block."""
    if tensor.dim() == 2 and layout == "transposed":
        return with_layout(tensor.t(), "packed", offset).t()
    if layout == "expanded" and tensor.dim() == 2 and tensor.size(0) > 0:
        return with_layout(tensor[:1], "packed", offset).expand(tensor.shape)
    gap = 3 if layout == "strided" else 1
    shape = (*tensor.shape[:-1], tensor.size(-1) * gap)
    block = torch.full((offset + shape_size(shape),), float("nan"))
    view = block.to(tensor)[offset:].view(shape)[..., ::gap]
    view.copy_(tensor)
    return view


def shape_size(shape):
    size = 1
    for length in shape:
        size *= length
    return size


layouts = st.tuples(
    st.sampled_from(["packed", "transposed", "strided", "expanded"]), st.integers(0, 3)
)


@st.composite
def legal_calls(draw_one):
    """(target, inputs, which of them require a gradient, grads of the outputs or None)"""
    target = draw_one(st.sampled_from(USABLE))
    bias = draw_one(st.sampled_from(["vector", "row", None]))
    batch_size, input_features = draw_one(sizes), draw_one(sizes)
    state_size = draw_one(sizes)
    torch.manual_seed(draw_one(st.integers(0, 99)))
    inputs = draw(target, batch_size, input_features, state_size, bias=bias)
    inputs = each(lambda t: with_layout(t, *draw_one(layouts)), inputs)
    wanted = [t is not None and draw_one(st.booleans()) for t in inputs]
    grads = [with_layout(g, *draw_one(layouts)) for g in draw_grads(inputs)]
    used = draw_one(st.sampled_from([(0, 1), (0,), (1,)]))
    return target, inputs, wanted, [g if i in used else None for i, g in enumerate(grads)]


def outputs_and_gradients(function, inputs, wanted, grads):
    inputs = [
        t if t is None else t.detach().requires_grad_(want) for t, want in zip(inputs, wanted)
    ]
    outputs = function(*inputs)
    results = dict(zip(OUTPUTS, outputs))
    names = [name for name, want in zip(INPUTS, wanted) if want]
    if names:
        used = [i for i, grad in enumerate(grads) if grad is not None]
        leaves = [t for t, want in zip(inputs, wanted) if want]
        gradients = torch.autograd.grad(
            [outputs[i] for i in used], leaves, [grads[i] for i in used]
        )
        results.update(("d_" + name, g) for name, g in zip(names, gradients))
    assert all(output.requires_grad == bool(names) for output in outputs)
    return results


@same_every_run
@hypothesis.given(legal_calls())
def test_legal_calls_equal_the_reference(call):
    target, inputs, wanted, grads = call
    before = each(torch.clone, inputs)
    actual = outputs_and_gradients(lltm_cell, inputs, wanted, grads)
    expected = outputs_and_gradients(reference.lltm_cell, exact(inputs), wanted, exact(grads))
    assert actual.keys() == expected.keys()
    for name, tensor in actual.items():
        assert tensor.shape == expected[name].shape and tensor.dtype == target.dtype
        # sums over at most 98 columns come to about one; those over the batch do not
        terms = max(1, len(inputs[0])) if name in ("d_weights", "d_bias") else 2
        assert_close(tensor, expected[name], target, name, terms)
    for tensor, value in zip(inputs, before):
        assert tensor is None or torch.equal(tensor, value), "an input was changed"


def resized(tensor, dim, by):
    shape = list(tensor.shape)
    shape[dim] = max(0, shape[dim] + by)
    return torch.zeros(shape, dtype=tensor.dtype, device=tensor.device)


# Each makes of a legal argument one that is illegal beside the other four, whichever it is.
MISTAKES = {
    "one more": lambda t, number: resized(t, number % t.dim(), 1 + number),
    "one less": lambda t, number: resized(t, number % t.dim(), -1),
    "another rank": lambda t, number: t.unsqueeze(number % (t.dim() + 1)).unsqueeze(0),
    "no rank": lambda t, number: t.sum(),
    "another half type": lambda t, number: t.to(
        torch.bfloat16 if t.dtype == torch.float16 else torch.float16
    ),
    "int64": lambda t, number: t.long(),
    "complex": lambda t, number: t.to(torch.complex64),
    "the other float": lambda t, number: t.to(
        torch.float32 if t.dtype == torch.float64 else torch.float64
    ),
    "sparse": lambda t, number: t.to_sparse(),
    "meta": lambda t, number: t.to("meta"),
    "a list": lambda t, number: t.tolist(),
    "a number": lambda t, number: float(number),
    "text": lambda t, number: "text",
}
FUNCTIONS = {
    "lltm_cell": lltm_cell,
    "op": torch.ops.lltm_decoupled.cell,
    "forward": lltm_decoupled.forward,
}


@pytest.mark.parametrize("name", FUNCTIONS)
@same_every_run
@hypothesis.given(
    target=st.sampled_from(USABLE),
    bias=st.sampled_from(["vector", "row"]),
    sizes=st.tuples(st.integers(2, 6), st.integers(2, 6), st.integers(2, 6)),
    position=st.integers(0, 4),
    mistake=st.sampled_from(sorted(MISTAKES)),
    number=st.integers(0, 5),
    requires_grad=st.booleans(),
)
def test_illegal_calls_raise_and_do_no_harm(
    name, target, bias, sizes, position, mistake, number, requires_grad
):
    function = FUNCTIONS[name]
    inputs = draw(target, *sizes, bias=bias)
    wrong = list(inputs)
    wrong[position] = MISTAKES[mistake](inputs[position], number)
    if requires_grad:
        wrong = [
            t.requires_grad_() if isinstance(t, torch.Tensor) and t.is_floating_point() else t
            for t in wrong
        ]
    with pytest.raises((RuntimeError, ValueError, TypeError)) as caught:
        function(*wrong)
    message = str(caught.value)
    # torch says which argument is no tensor by its name, pybind by listing the whole signature
    assert any(argument in message for argument in INPUTS), message
    inputs = each(torch.Tensor.detach, inputs)
    check_against_reference(lltm_cell, inputs, target)

"""The operators under torch.library.opcheck, on fake tensors, and on devices without a kernel."""

import pytest
import torch
from helpers import (
    INPUTS,
    OUTPUTS,
    assert_close,
    draw,
    draw_grads,
    evaluate,
    exact,
    leaves,
)

from lltm_decoupled import reference

BIASES = ("vector", "row", None)
ops = torch.ops.lltm_decoupled
cell = ops.cell


def needs(has_it, what):
    return pytest.mark.skipif(not has_it, reason=f"torch {torch.__version__} has no {what}")


library = getattr(torch, "library", None)  # torch before 1.12 has none
needs_opcheck = needs(hasattr(library, "opcheck"), "torch.library.opcheck")
needs_fake = needs(hasattr(library, "register_fake"), "torch.library.register_fake")


def test_schemas():
    """The public one is a contract; the two halves are ours to change."""
    found = [
        str(schema)
        for schema in torch._C._jit_get_all_schemas()
        if schema.name.startswith("lltm_decoupled::")
    ]
    assert sorted(text.split("(")[0].split("::")[1] for text in found) == [
        "_cell_backward",
        "_cell_forward",
        "_sequence_backward",
        "_sequence_forward",
        "cell",
        "sequence",
    ], "a new operator needs tests here, or in test_sequence_opcheck.py"
    assert (
        "lltm_decoupled::cell(Tensor input, Tensor weights, Tensor? bias, Tensor old_h, "
        "Tensor old_cell) -> (Tensor new_h, Tensor new_cell)"
    ) in found


LAYOUTS = {
    "packed": lambda t: t,
    "transposed": lambda t: t.t().contiguous().t(),
    "every second": lambda t: t.repeat_interleave(2, dim=-1)[..., ::2],
    "expanded": lambda t: t[:1].expand(t.shape),
}


def laid_out(layout, tensors):
    return [
        LAYOUTS[layout](t) if t is not None and (t.dim() == 2 or layout != "transposed") else t
        for t in tensors
    ]


@needs_opcheck
@pytest.mark.parametrize("requires_grad", [False, True], ids=["plain", "requires_grad"])
@pytest.mark.parametrize("bias", BIASES)
def test_cell(bias, requires_grad, target):
    inputs = draw(target, bias=bias)
    torch.library.opcheck(cell.default, tuple(leaves(inputs) if requires_grad else inputs))


@needs_opcheck
@pytest.mark.parametrize("sizes", [(0, 3, 4), (1, 1, 1), (1, 3, 4), (2, 5, 3)], ids=str)
def test_cell_sizes(sizes, target):
    torch.library.opcheck(cell.default, tuple(leaves(draw(target, *sizes))))


@needs_opcheck
@pytest.mark.parametrize("requires_grad", [False, True], ids=["plain", "requires_grad"])
@pytest.mark.parametrize("layout", list(LAYOUTS)[1:])
def test_cell_layouts(layout, requires_grad, float64_target):
    """Fake and real outputs must have the same strides, whatever those of the inputs are."""
    for batch_size in (1, 5) if layout == "transposed" else (5,):
        inputs = laid_out(layout, draw(float64_target, batch_size))
        torch.library.opcheck(cell.default, tuple(leaves(inputs) if requires_grad else inputs))


# Every layout with a bias, and every bias packed: the two have nothing to do with each other.
HALVES = [(layout, "vector") for layout in LAYOUTS] + [("packed", bias) for bias in BIASES[1:]]


@needs_opcheck
@pytest.mark.parametrize("layout, bias", HALVES)
def test_forward_half(layout, bias, float64_target):
    """It records no gradient of its own: `cell` does, of which it is a part."""
    for batch_size in (1, 5) if layout == "transposed" else (5,):
        inputs = laid_out(layout, draw(float64_target, batch_size, bias=bias))
        torch.library.opcheck(ops._cell_forward.default, tuple(inputs))


def backward_arguments(inputs, grads, mask):
    input, weights, bias, old_h, _ = inputs
    _, new_cell, gates = ops._cell_forward(*inputs)
    return (*grads, input, weights, bias, old_h, new_cell, gates, mask)


ODD, EVEN = [True, False, True, False, True], [False, True, False, True, False]
MASKS = [[True] * 5, [False] * 5, ODD, EVEN]


@needs_opcheck
@pytest.mark.parametrize("layout, bias", HALVES)
def test_backward_half(layout, bias, float64_target):
    inputs = laid_out(layout, draw(float64_target, bias=bias))
    grads = laid_out(layout, draw_grads(inputs))
    op = ops._cell_backward.default
    for mask in MASKS if (layout, bias) == HALVES[0] else MASKS[:1]:
        torch.library.opcheck(op, backward_arguments(inputs, grads, mask))
    for one in ((grads[0], None), (None, grads[1])):
        torch.library.opcheck(op, backward_arguments(inputs, one, [True] * 5))


@needs_fake
@pytest.mark.parametrize("wrong", ["grad_h", "grad_cell", "new_cell", "gates"])
def test_the_backward_half_checks_shapes_without_memory_too(wrong, float64_target):
    inputs = draw(float64_target)
    names = ["grad_h", "grad_cell", *INPUTS[:4], "new_cell", "gates"]
    *tensors, mask = backward_arguments(inputs, draw_grads(inputs), [True] * 5)
    tensors[names.index(wrong)] = tensors[names.index(wrong)][:, 1:]
    for device in (float64_target.device, "meta"):
        with pytest.raises(
            RuntimeError, match=wrong if wrong != "new_cell" else "new_cell|old_cell"
        ):
            ops._cell_backward(*[t.to(device) for t in tensors], mask)


@needs_fake
def test_fake_tensors(target):
    from torch._subclasses.fake_tensor import FakeTensorMode

    with FakeTensorMode() as mode:
        inputs = [mode.from_tensor(t) for t in draw(target)]
        for output in cell(*inputs):
            assert output.shape == (5, 4)
            assert (output.dtype, output.device) == (target.dtype, torch.device(target.device))
            assert output.stride() == (4, 1)
        with_grad = leaves(inputs)
        gradients = torch.autograd.grad(cell(*with_grad)[0].sum(), with_grad)
        assert [g.shape for g in gradients] == [t.shape for t in inputs]


needs_dispatch_table = needs(
    hasattr(torch._C, "_dispatch_has_computed_kernel_for_dispatch_key"), "dispatch table to ask"
)
NAMES = ("cell", "_cell_forward", "_cell_backward")


@needs_dispatch_table
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("key", ["MPS", "XPU", "HPU", "PrivateUse1"])
def test_a_device_without_kernel_takes_the_formula(key, name):
    """The dispatcher's own table: there no kernel of ours, but the one of CompositeExplicit..."""
    qualified = "lltm_decoupled::" + name
    assert torch._C._dispatch_has_computed_kernel_for_dispatch_key(qualified, key)
    assert not torch._C._dispatch_has_kernel_for_dispatch_key(qualified, key)
    assert torch._C._dispatch_has_kernel_for_dispatch_key(qualified, "CompositeExplicitAutograd")
    line = [
        line
        for line in torch._C._dispatch_dump_table(qualified).splitlines()
        if line.startswith(key + ":")
    ]
    assert len(line) == 1 and "[default backend kernel]" in line[0]


@needs(hasattr(getattr(cell, "default", None), "redispatch"), "OpOverload.redispatch")
@pytest.mark.parametrize("bias", BIASES)
def test_the_formula_gives_the_same_values(bias, target):
    """What a device without kernel runs, run here: the operators sent to such a device's slot."""

    def on_another_device(name, *arguments):
        keys = torch._C.DispatchKeySet(torch._C.DispatchKey.PrivateUse1)
        return getattr(ops, name).default.redispatch(keys, *arguments)

    inputs = draw(target, bias=bias)
    grads = draw_grads(inputs)
    expected = evaluate(reference.lltm_cell, exact(inputs), exact(grads))
    outputs = on_another_device("cell", *inputs)
    halves = on_another_device("_cell_forward", *inputs)
    for name, *both in zip(OUTPUTS, outputs, halves):
        for output in both:
            assert_close(output, expected[name], target, name)
    arguments = backward_arguments(inputs, grads, [True] * 5)
    gradients = on_another_device("_cell_backward", *arguments)
    for name, gradient in zip(INPUTS, gradients):
        if "d_" + name in expected:
            assert gradient.shape == expected["d_" + name].shape
            assert_close(gradient, expected["d_" + name], target, "d_" + name, terms=5)
        else:
            assert gradient is None
    for used in range(2):
        one = [grad if i == used else None for i, grad in enumerate(grads)]
        masked = on_another_device("_cell_backward", *backward_arguments(inputs, one, ODD))
        kernel = ops._cell_backward(*backward_arguments(inputs, one, ODD))
        for actual, value in zip(masked, kernel):
            assert (actual is None) == (value is None)
            if value is not None:
                assert_close(actual, value, target, terms=5)

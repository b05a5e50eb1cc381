"""torch.ops.lltm_decoupled.cell under torch's own tools: opcheck, compile, export, func."""

import pytest
import torch
from helpers import (
    all_equal,
    assert_close,
    check_against_reference,
    draw,
    draw_grads,
    evaluate,
    exact,
    leaves,
)

from lltm_decoupled import LLTM, lltm_cell, reference

BIASES = ("vector", "row", None)
cell = torch.ops.lltm_decoupled.cell


def needs(has_it, what):
    return pytest.mark.skipif(not has_it, reason=f"torch {torch.__version__} has no {what}")


library = getattr(torch, "library", None)  # torch before 1.12 has none
needs_opcheck = needs(hasattr(library, "opcheck"), "torch.library.opcheck")
needs_compile = needs(hasattr(library, "register_fake"), "torch.library.register_fake")
needs_func = needs(hasattr(torch, "func"), "torch.func")


def test_schema():
    schemas = torch._C._jit_get_schemas_for_operator("lltm_decoupled::cell")
    assert [str(schema) for schema in schemas] == [
        "lltm_decoupled::cell(Tensor input, Tensor weights, Tensor? bias, Tensor old_h, "
        "Tensor old_cell) -> (Tensor new_h, Tensor new_cell)"
    ]


@needs_opcheck
@pytest.mark.parametrize("requires_grad", [False, True], ids=["plain", "requires_grad"])
@pytest.mark.parametrize("bias", BIASES)
def test_opcheck(bias, requires_grad, target):
    inputs = draw(target, bias=bias)
    torch.library.opcheck(cell.default, tuple(leaves(inputs) if requires_grad else inputs))


@needs_opcheck
@pytest.mark.parametrize("sizes", [(0, 3, 4), (1, 1, 1), (2, 5, 3)], ids=str)
def test_opcheck_sizes(sizes, target):
    torch.library.opcheck(cell.default, tuple(leaves(draw(target, *sizes))))


@needs_opcheck
def test_opcheck_layouts(target):
    """Fake and real outputs must have the same strides, whatever those of the inputs are."""
    inputs = [t.t().contiguous().t() if t.dim() == 2 else t for t in draw(target)]
    torch.library.opcheck(cell.default, tuple(inputs))


@needs_compile
@pytest.mark.parametrize("bias", BIASES)
@pytest.mark.parametrize("function", [lltm_cell, cell], ids=["lltm_cell", "op"])
def test_compile_without_graph_breaks(function, bias, target):
    torch._dynamo.reset()
    compiled = torch.compile(lambda *inputs: function(*inputs), fullgraph=True, backend="aot_eager")
    check_against_reference(compiled, draw(target, bias=bias), target)


@needs_compile
def test_compiled_module_trains_with_any_batch_size(target):
    """Forward and backward equal to eager; at most one recompilation when the batch changes."""
    torch._dynamo.reset()
    module = LLTM(3, 4, device=target.device, dtype=target.dtype)
    graphs = []

    def backend(graph, example_inputs):
        graphs.append(graph)
        from torch._dynamo.backends.registry import lookup_backend

        return lookup_backend("aot_eager")(graph, example_inputs)

    compiled = torch.compile(module, fullgraph=True, backend=backend)
    for batch_size in (5, 6, 7, 9, 12):
        input, _, _, *state = draw(target, batch_size=batch_size)
        gradients = []
        for model in (compiled, module):
            outputs = model(input, tuple(state))
            loss = (outputs[0] * outputs[1]).sum()
            gradients.append((loss, *torch.autograd.grad(loss, list(module.parameters()))))
        for actual, expected in zip(*gradients):
            assert_close(actual, expected, target, f"batch {batch_size}", terms=batch_size)
    assert len(graphs) <= 2


@needs_compile
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


@needs(hasattr(torch, "export"), "torch.export")
def test_export(target):
    class Step(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.cell = LLTM(3, 4, device=target.device, dtype=target.dtype)

        def forward(self, input, old_h, old_cell):
            return self.cell(input, (old_h, old_cell))

    step = Step()
    input, _, _, old_h, old_cell = draw(target)
    program = torch.export.export(step, (input, old_h, old_cell))
    assert all_equal(program.module()(input, old_h, old_cell), step(input, old_h, old_cell))


@needs_func
def test_func_grad(target):
    """Function transforms: the same gradients as autograd."""
    inputs = draw(target)
    grads = draw_grads(inputs)

    def loss(*tensors):
        return sum((output * grad).sum() for output, grad in zip(lltm_cell(*tensors), grads))

    actual = torch.func.grad(loss, argnums=tuple(range(5)))(*inputs)
    expected = evaluate(reference.lltm_cell, exact(inputs), exact(grads))
    for name, tensor in zip(list(expected)[2:], actual):
        assert_close(tensor, expected[name], target, name, terms=5)


@needs_func
@pytest.mark.parametrize("mapped", ["states", "weights"])
def test_vmap(mapped, target):
    """Seven samples at once equal a loop over them."""
    samples = [draw(target) for _ in range(7)]
    dims = (0, None, None, 0, 0) if mapped == "states" else (None, 0, 0, None, None)
    inputs = [
        samples[0][i] if dim is None else torch.stack([sample[i] for sample in samples])
        for i, dim in enumerate(dims)
    ]
    actual = torch.func.vmap(lltm_cell, in_dims=dims)(*inputs)
    for number in range(7):
        one = [t if dim is None else t[number] for t, dim in zip(inputs, dims)]
        for output, expected in zip(actual, reference.lltm_cell(*exact(one))):
            assert_close(output[number], expected, target, f"sample {number}")


@needs_func
def test_jacobians(target):
    inputs = draw(target, batch_size=2)
    expected = torch.func.jacrev(reference.lltm_cell)(*exact(inputs))
    actual = torch.func.jacrev(lltm_cell)(*inputs)
    for tensor, value in zip(actual, expected):
        assert_close(tensor, value, target)


@needs_func
def test_jvp(target):
    """Forward mode: a tangent that is right or an error, never a silent zero."""
    inputs, tangents = draw(target), draw(target)
    primal, tangent = torch.func.jvp(lltm_cell, tuple(inputs), tuple(tangents))
    expected = torch.func.jvp(reference.lltm_cell, tuple(exact(inputs)), tuple(exact(tangents)))
    for actual, value in zip((*primal, *tangent), (*expected[0], *expected[1])):
        assert_close(actual, value, target)


def test_dual_numbers_are_not_dropped(target):
    """The same through torch.autograd.forward_ad, which every supported torch has."""
    import torch.autograd.forward_ad as forward_ad

    inputs = draw(target)
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(inputs[0], torch.ones_like(inputs[0]))
        try:
            new_h, _ = lltm_cell(dual, *inputs[1:])
        except (RuntimeError, NotImplementedError) as error:
            assert "forward" in str(error)
            return
        actual = forward_ad.unpack_dual(new_h).tangent
        exact_inputs = exact(inputs)
        dual = forward_ad.make_dual(exact_inputs[0], torch.ones_like(exact_inputs[0]))
        new_h, _ = reference.lltm_cell(dual, *exact_inputs[1:])
        assert actual is not None, "the tangent was dropped without an error"
        assert_close(actual, forward_ad.unpack_dual(new_h).tangent, target)

"""torch.compile, torch.export and TorchScript's tracer: the cell inside a graph."""

import importlib.util

import pytest
import torch
from helpers import all_equal, assert_close, check_against_reference, draw, exact

from lltm_decoupled import LLTM, LLTMSequence, lltm_cell, lltm_sequence

BIASES = ("vector", "row", None)
FUNCTIONS = {"lltm_cell": lltm_cell, "op": torch.ops.lltm_decoupled.cell}


def needs(has_it, what):
    return pytest.mark.skipif(not has_it, reason=f"torch {torch.__version__} has no {what}")


needs_compile = needs(
    hasattr(getattr(torch, "library", None), "register_fake"), "torch.library.register_fake"
)
# torch itself calls what it has deprecated while it compiles.
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning:torch.*")


def make(target):
    return LLTM(3, 4, device=target.device, dtype=target.dtype)


class Step(torch.nn.Module):
    """A cell that takes and gives tensors only, as exporters want it."""

    def __init__(self, cell):
        super().__init__()
        self.cell = cell

    def forward(self, input, old_h, old_cell):
        return self.cell(input, (old_h, old_cell))


def draw_step(target, batch_size):
    input, _, _, old_h, old_cell = draw(target, batch_size)
    return input, old_h, old_cell


def counting(backend):
    """The named backend, and a list that grows by one for each graph that it compiles."""
    from torch._dynamo.backends.registry import lookup_backend

    graphs = []

    def compile_graph(graph, example_inputs):
        compiled = lookup_backend(backend)(graph, example_inputs)
        graphs.append(graph)  # here, for Inductor may ask dynamo to start again
        return compiled

    return compile_graph, graphs


@needs_compile
@pytest.mark.parametrize("bias", BIASES)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_no_graph_breaks(name, bias, target):
    torch._dynamo.reset()
    function = FUNCTIONS[name]
    compiled = torch.compile(lambda *inputs: function(*inputs), fullgraph=True, backend="aot_eager")
    check_against_reference(compiled, draw(target, bias=bias), target)


def assert_trains_like_eager(compiled, module, batch_sizes, target):
    for batch_size in batch_sizes:
        input, *state = draw_step(target, batch_size)
        gradients = []
        for model in (compiled, module):
            leaf = input.clone().requires_grad_()
            outputs = model(leaf, tuple(state))
            loss = (outputs[0] * outputs[1]).sum()
            wanted = [leaf, *module.parameters()]
            gradients.append((*outputs, *torch.autograd.grad(loss, wanted)))
        for actual, expected in zip(*gradients):
            assert_close(actual, expected, target, f"batch {batch_size}", terms=batch_size)


@needs_compile
@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
def test_one_graph_for_every_batch_size(backend, target, recwarn):
    """dynamic=True: forward and backward equal eager, compiled once, without a warning."""
    if backend == "inductor":
        if importlib.util.find_spec("triton") is None and target.device != "cpu":
            pytest.skip("Inductor needs Triton for a GPU")
        # one C++ compilation of some seconds is enough: the cell is opaque to Inductor
        if target.dtype != torch.float32 or target.device == "cuda:1":
            pytest.skip("Inductor is tried with float32 on the CPU and the first GPU only")
    torch._dynamo.reset()
    module = make(target)
    compile_graph, graphs = counting(backend)
    compiled = torch.compile(module, fullgraph=True, dynamic=True, backend=compile_graph)
    assert_trains_like_eager(compiled, module, (5, 2, 7, 12), target)
    assert len(graphs) == 1
    texts = [str(w.message) for w in recwarn if not issubclass(w.category, DeprecationWarning)]
    assert not [text for text in texts if "lltm_decoupled" in text]


@needs_compile
def test_one_recompilation_when_the_batch_turns_out_to_change(target):
    """Without dynamic=True the second size makes the batch dynamic, and that serves the rest."""
    torch._dynamo.reset()
    module = make(target)
    compile_graph, graphs = counting("aot_eager")
    compiled = torch.compile(module, fullgraph=True, backend=compile_graph)
    assert_trains_like_eager(compiled, module, (5, 6, 7, 9), target)
    assert len(graphs) <= 2


@needs_compile
def test_a_loop_of_steps_is_one_graph(target):
    torch._dynamo.reset()
    module = make(target)

    def unroll(module, sequence, state):
        for input in sequence.unbind(0):
            state = module(input, state)
        return state

    input, *state = draw_step(target, 5)
    sequence = torch.stack([input, 2 * input, -input])
    compiled = torch.compile(unroll, fullgraph=True, backend="aot_eager")
    for actual, expected in zip(
        compiled(module, sequence, tuple(state)), unroll(module, sequence, tuple(state))
    ):
        assert_close(actual, expected, target)


@needs_compile
@pytest.mark.parametrize("call", ["no state", "unbatched"])
def test_other_calls_of_the_module_compile(call, target):
    torch._dynamo.reset()
    module = make(target)
    input = draw_step(target, 5)[0]
    arguments = (input,) if call == "no state" else (input[0],)
    compiled = torch.compile(module, fullgraph=True, backend="aot_eager")
    for actual, expected in zip(compiled(*arguments), module(*arguments)):
        assert actual.shape == expected.shape
        assert_close(actual, expected, target)


@needs_compile
def test_transforms_inside_a_compiled_function(target):
    torch._dynamo.reset()
    inputs = draw(target)

    def d_input(*inputs):
        return torch.func.grad(lambda x: lltm_cell(x, *inputs[1:])[0].sum())(inputs[0])

    def mapped(*inputs):
        step = lambda h: lltm_cell(*inputs[:3], h, inputs[4])[0]  # noqa: E731
        return torch.func.vmap(step)(torch.stack([inputs[3], -inputs[3]]))

    for function in (d_input, mapped):
        compiled = torch.compile(function, fullgraph=True, backend="aot_eager")
        assert_close(compiled(*inputs), function(*exact(inputs)), target, terms=5)


@needs_compile
@pytest.mark.parametrize("dynamic", [None, True])
@pytest.mark.parametrize("mapped", ["input", "parameters"])
@pytest.mark.parametrize("layer", [LLTM, LLTMSequence])
def test_vmap_of_changing_sizes(layer, mapped, dynamic, float64_target):
    """The sizes that vmap's formula meets are then symbols."""
    target = float64_target
    module = layer(3, 4, device=target.device, dtype=target.dtype)
    function = lltm_cell if layer is LLTM else lltm_sequence
    steps = () if layer is LLTM else (6,)
    parameters = [torch.stack([p.detach(), 2 * p.detach()]) for p in module.parameters()]

    def over_parameters(input, weights, bias):
        zeros = input.new_zeros(input.shape[-2], 4)
        return torch.vmap(lambda w, b: function(input, w, b, zeros, zeros)[0])(weights, bias)

    def over_input(input, weights, bias):
        return torch.vmap(lambda part: module(part)[0])(input)

    call = over_input if mapped == "input" else over_parameters
    torch._dynamo.reset()
    compiled = torch.compile(call, fullgraph=True, dynamic=dynamic, backend="aot_eager")
    for batch_size in (5, 2, 7):
        shape = (*([3] if mapped == "input" else []), *steps, batch_size, 3)
        input = torch.randn(shape, device=target.device, dtype=target.dtype, requires_grad=True)
        results = []
        for run in (compiled, call):
            output = run(input, *parameters)
            results.append((output, *torch.autograd.grad(output.square().sum(), input)))
        torch.testing.assert_close(*results)


@needs_compile
def test_export_with_a_dynamic_batch(target):
    step = Step(make(target))
    batch = torch.export.Dim("batch")
    program = torch.export.export(
        step, draw_step(target, 5), dynamic_shapes=({0: batch}, {0: batch}, {0: batch})
    )
    targets = [str(node.target) for node in program.graph.nodes]
    assert targets.count("lltm_decoupled.cell.default") == 1
    for batch_size in (5, 2, 9):
        inputs = draw_step(target, batch_size)
        assert all_equal(program.module()(*inputs), step(*inputs))


@needs_compile
def test_an_exported_program_is_saved_and_loaded(target, tmp_path):
    step, inputs = Step(make(target)), draw_step(target, 5)
    path = str(tmp_path / "step.pt2")
    torch.export.save(torch.export.export(step, inputs), path)
    assert all_equal(torch.export.load(path).module()(*inputs), step(*inputs))


@pytest.mark.filterwarnings("ignore:.*torch.jit.trace.*")
def test_trace(target, tmp_path):
    """TorchScript's tracer keeps the operator, for any batch size, also through a file."""
    if not hasattr(torch.jit, "trace"):
        pytest.skip(f"torch {torch.__version__} has no torch.jit.trace")
    step = Step(make(target))
    traced = torch.jit.trace(step, draw_step(target, 5))
    path = str(tmp_path / "step.pt")
    traced.save(path)
    for model in (traced, torch.jit.load(path)):
        assert "lltm_decoupled::cell" in str(model.inlined_graph)
        for batch_size in (5, 2):
            inputs = draw_step(target, batch_size)
            assert all_equal(model(*inputs), step(*inputs))

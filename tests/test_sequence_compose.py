"""A sequence inside torch.compile and torch.export."""

import importlib.util

import pytest
import torch
from helpers import all_equal
from layer_helpers import draw_layer_call, flat, make, weigh
from sequence_helpers import check_sequence, draw_masks, draw_sequence, pack, ragged
from test_compile import counting, needs_compile
from torch.nn.utils.rnn import pack_sequence

from lltm_decoupled import lltm_sequence

# torch itself calls what it has deprecated while it compiles.
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning:torch.*")


def compiled(function, backend="aot_eager"):
    torch._dynamo.reset()
    compile_graph, graphs = counting(backend)
    return torch.compile(function, fullgraph=True, dynamic=True, backend=compile_graph), graphs


# The first sizes differ from all others: dynamic=True takes equal sizes for one.
SIZES = ((6, 5), (7, 2), (40, 3))


@needs_compile
@pytest.mark.parametrize("way", ["reverse", "zoneout", "packed"])
def test_one_graph_of_the_function_for_every_size(way, float64_target):
    function, graphs = compiled(lltm_sequence)
    for sizes in SIZES:
        inputs, options = draw_sequence(float64_target, *sizes), {"reverse": way == "reverse"}
        if way == "packed":
            options["batch_sizes"] = ragged(*sizes)
            inputs = pack(inputs, options["batch_sizes"])
        if way == "zoneout":
            options.update(draw_masks(inputs))
        check_sequence(float64_target, inputs, function=function, **options)
    assert len(graphs) == 1


@needs_compile
def test_two_graphs_of_recomputation(float64_target):
    """At most: up to 32 steps one cell is kept, and new torch gives sizes of 1 their own graph."""
    function, graphs = compiled(lltm_sequence)
    for sizes in ((6, 5), (7, 2), (40, 3), (70, 2), (33, 3)):
        inputs = draw_sequence(float64_target, *sizes)
        check_sequence(float64_target, inputs, recompute=True, function=function)
    assert 1 <= len(graphs) <= 2


def assert_like_eager(function, module, calls, target):
    for call in calls:
        results = []
        for model in (function, module):
            outputs = flat(model(*call))
            results.append(outputs + list(torch.autograd.grad(weigh(outputs), module.parameters())))
        for actual, expected in zip(*results):
            # the same kernels on both sides: only what surrounds them may round differently
            torch.testing.assert_close(
                actual, expected, rtol=10 * target.rtol, atol=100 * target.atol
            )


def assert_one_graph_of_the_layer(module, backend, target):
    function, graphs = compiled(module, backend)
    calls = []
    for sizes in SIZES:
        input, state = draw_layer_call(module, *sizes)
        calls.append((input.transpose(0, 1).contiguous(), state))
    assert_like_eager(function, module, calls, target)
    assert len(graphs) == 1


@needs_compile
def test_one_graph_of_the_layer_for_every_size(target, recwarn):
    """Batch first, two directions; without a warning of ours."""
    module = make(target, 3, 4, bidirectional=True, batch_first=True)
    assert_one_graph_of_the_layer(module, "aot_eager", target)
    texts = [str(w.message) for w in recwarn if not issubclass(w.category, DeprecationWarning)]
    assert not [text for text in texts if "lltm_decoupled" in text]


@needs_compile
def test_inductor(target):
    if importlib.util.find_spec("triton") is None and target.device != "cpu":
        pytest.skip("Inductor needs Triton for a GPU")
    if target.dtype != torch.float32 or target.device == "cuda:1":
        pytest.skip("Inductor is tried with float32 on the CPU and the first GPU only")
    assert_one_graph_of_the_layer(make(target, batch_first=True), "inductor", target)


@needs_compile
def test_transforms_of_packed_data_inside_a_compiled_graph(float64_target):
    """They want numbers, which a whole graph has not."""
    batch_sizes = ragged(4, 5)
    inputs = pack(draw_sequence(float64_target), batch_sizes)

    def gradient(input):
        loss = lambda x: lltm_sequence(x, *inputs[1:], batch_sizes=batch_sizes)[0].sum()  # noqa: E731
        return torch.func.grad(loss)(input)

    torch._dynamo.reset()
    results = torch.compile(gradient, backend="aot_eager")(inputs[0]), gradient(inputs[0])
    torch.testing.assert_close(*results)


def why_packed_data_is_not_compiled():
    """None if this torch's compiler knows a PackedSequence; that of torch 2.4 does not."""
    twice = torch.compile(lambda packed: 2 * packed.data, backend="eager", fullgraph=True)
    try:
        twice(pack_sequence([torch.ones(2, 1)]))
        return None
    except Exception as error:
        return f"torch {torch.__version__} cannot compile a PackedSequence: {type(error).__name__}"


@needs_compile
@pytest.mark.parametrize("call", ["no state", "one row", "unsorted", "sorted", "no state, sorted"])
def test_other_calls_of_the_layer_compile(call, float64_target):
    if call.endswith("sorted") and why_packed_data_is_not_compiled():
        pytest.skip(why_packed_data_is_not_compiled())
    module = make(float64_target)
    input, state = draw_layer_call(module)
    rows = [input[:n, i] for i, n in enumerate((6, 3, 2))]
    some = tuple(part[:, :3] for part in state)
    arguments = {
        "no state": (input,),
        "one row": (input[:, 0], tuple(part[:, 0] for part in state)),
        "unsorted": (pack_sequence(rows[::-1], enforce_sorted=False), some),
        "sorted": (pack_sequence(rows), some),
        "no state, sorted": (pack_sequence(rows),),
    }[call]
    assert_like_eager(compiled(module)[0], module, [arguments], float64_target)


@needs_compile
def test_dropout_and_zoneout_compile(float64_target):
    """Random in training, and the module of evaluation in evaluation."""
    module = make(float64_target, 3, 4, 2, dropout=0.3, zoneout=(0.2, 0.2))
    call = draw_layer_call(module)
    function, _ = compiled(module)
    assert not torch.equal(function(*call)[0], function(*call)[0])
    module.eval()
    assert_like_eager(function, module, [call], float64_target)


def from_the_end_of_long_ones(input, *others):
    return lltm_sequence(input, *others, reverse=input.size(0) > 3, recompute=input.size(0) > 4)


def test_a_flag_of_a_size_is_traced(float64_target):
    """There it is a tensor."""
    inputs = draw_sequence(float64_target, 6, 5)
    with pytest.warns(torch.jit.TracerWarning):
        traced = torch.jit.trace(from_the_end_of_long_ones, inputs)
    assert all_equal(traced(*inputs), lltm_sequence(*inputs, reverse=True))


@needs_compile
@pytest.mark.parametrize("strict", [True, False])
def test_a_flag_of_a_size_is_exported(strict, float64_target):
    """There it is a SymBool, if torch does not look into Python."""

    class Last(torch.nn.Module):
        def forward(self, input, weights, bias, h0, c0):
            return from_the_end_of_long_ones(input, weights, bias, h0, c0)

    inputs = draw_sequence(float64_target, 7, 5)
    steps = {0: torch.export.Dim("steps", min=5)}
    shapes = (steps, None, None, None, None)
    program = torch.export.export(Last(), tuple(inputs), dynamic_shapes=shapes, strict=strict)
    inputs = draw_sequence(float64_target, 40, 5)
    assert all_equal(program.module()(*inputs), lltm_sequence(*inputs, reverse=True))


@needs_compile
def test_errors_are_the_same_when_compiled(target):
    function, _ = compiled(lltm_sequence)
    inputs = draw_sequence(target)
    with pytest.raises(RuntimeError, match="h0"):
        function(*inputs[:3], inputs[3][:, 1:], inputs[4])
    assert all_equal(function(*inputs), lltm_sequence(*inputs))


@needs_compile
def test_export_with_dynamic_steps_and_batch(float64_target, tmp_path):
    class Layer(torch.nn.Module):  # exporters want tensors only
        def __init__(self):
            super().__init__()
            self.rnn = make(float64_target, 3, 4, 2, bidirectional=True)

        def forward(self, input, h0, c0):
            output, (h_n, c_n) = self.rnn(input, (h0, c0))
            return output, h_n, c_n

    layer = Layer()

    def draw(steps, batch_size):
        input, state = draw_layer_call(layer.rnn, steps, batch_size)
        return (input, *state)

    steps, batch = torch.export.Dim("steps"), torch.export.Dim("batch")
    shapes = ({0: steps, 1: batch}, {1: batch}, {1: batch})
    program = torch.export.export(layer, draw(6, 5), dynamic_shapes=shapes)
    path = str(tmp_path / "layer.pt2")
    torch.export.save(program, path)
    for model in (program.module(), torch.export.load(path).module()):
        for sizes in ((6, 5), (40, 2), (3, 9)):
            inputs = draw(*sizes)
            assert all_equal(model(*inputs), layer(*inputs))
    called = [str(node.target) for node in program.graph.nodes]
    assert called.count("lltm_decoupled.sequence.default") == 4

"""docs/features.md holds for whole sequences too: every cell of its table is tried with them."""

import pytest
import torch
from conftest import TOLERANCES, Target, require_target
from helpers import assert_close, exact, leaves
from layer_helpers import draw_layer_call, exact_parameters, flat, loop_of_cells, make
from sequence_helpers import OUTPUTS, check_sequence, draw_sequence
from test_features import (
    CELLS,
    DEVICES,
    NO_SUCH_THING,
    need,
    need_compile,
    table,
)
from test_features import CLAIMS as CELL_CLAIMS

from lltm_decoupled import LLTMSequence, lltm_sequence, reference

# torch itself calls what it has deprecated for forward mode.
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning:torch.*")


def forward(target):
    inputs = draw_sequence(target)
    values = reference.lltm_sequence(*exact(inputs))
    for name, output, value in zip(OUTPUTS, lltm_sequence(*inputs), values):
        assert output.dtype == target.dtype
        assert_close(output, value, target, name, terms=4)


def backward(target):
    check_sequence(target, draw_sequence(target))


def double_backward(target):
    def second(function, inputs):
        inputs = leaves(inputs)
        output, _, c_n = function(*inputs)
        loss = output.sum() + c_n.sum()
        (d_input,) = torch.autograd.grad(loss, inputs[0], create_graph=True)
        return torch.autograd.grad((d_input**2).sum(), inputs)

    inputs = draw_sequence(target, steps=2, batch_size=2)
    expected = second(reference.lltm_sequence, exact(inputs))
    for actual, value in zip(second(lltm_sequence, inputs), expected):
        assert_close(actual, value, target, terms=30)  # sums over steps, batch and features


def forward_mode(target):
    def tangents(function, inputs, direction):
        with torch.autograd.forward_ad.dual_level():
            dual = torch.autograd.forward_ad.make_dual(inputs[3], direction)
            outputs = function(*inputs[:3], dual, inputs[4])
            return [torch.autograd.forward_ad.unpack_dual(t).tangent for t in outputs]

    inputs = draw_sequence(target)
    direction = torch.ones_like(inputs[3])
    expected = tangents(reference.lltm_sequence, exact(inputs), exact([direction])[0])
    for actual, value in zip(tangents(lltm_sequence, inputs, direction), expected):
        assert_close(actual, value, target, terms=4)


def vmap(target):
    need(hasattr(torch, "func"), "torch.func")
    inputs = draw_sequence(target)
    states = torch.stack([inputs[3], -inputs[3]])
    run = torch.func.vmap(lambda h: lltm_sequence(*inputs[:3], h, inputs[4])[0])
    for output, state in zip(run(states), states):
        expected = reference.lltm_sequence(*exact([*inputs[:3], state, inputs[4]]))[0]
        assert_close(output, expected, target, terms=4)


def compiled(target):
    need_compile()
    torch._dynamo.reset()
    function = torch.compile(lltm_sequence, fullgraph=True, dynamic=True, backend="aot_eager")
    for sizes in ((6, 5), (3, 2)):
        check_sequence(target, draw_sequence(target, *sizes), function=function)


def export(target):
    need_compile()
    module = make(target)
    steps, batch = torch.export.Dim("steps"), torch.export.Dim("batch")
    program = torch.export.export(
        module, (draw_layer_call(module)[0],), dynamic_shapes=({0: steps, 1: batch},)
    )
    input = draw_layer_call(module, 3, 2)[0]
    for actual, value in zip(flat(program.module()(input)), flat(module(input))):
        assert torch.equal(actual, value)


def autocast(target):
    """A linear layer gives a half-precision input to a layer of float32 parameters."""
    linear = torch.nn.Linear(3, 3, device=target.device, dtype=target.dtype)
    module = make(target)
    with torch.autocast(torch.device(target.device).type, dtype=torch.bfloat16):
        input = linear(draw_layer_call(module)[0])
        assert input.dtype == torch.bfloat16
        outputs = flat(module(input))
    parameters = exact_parameters(module)
    state = torch.zeros(2, 1, 5, 4, dtype=torch.float64)
    rows, *finals = loop_of_cells(module, parameters, *exact([input]), state)
    for output, value in zip(outputs, [torch.stack(rows, 1), *finals]):
        # bfloat16 keeps 8 bits of what goes into the products and of what comes out of them
        assert_close(output, value, target._replace(rtol=0.02, atol=0.02), terms=6)
    sum(output.float().sum() for output in outputs).backward()
    assert all(parameter.grad.dtype == target.dtype for parameter in module.parameters())


def cuda_graph(target):
    inputs = leaves(draw_sequence(target))

    def run():
        outputs = lltm_sequence(*inputs)
        return [*outputs, *torch.autograd.grad(sum(output.sum() for output in outputs), inputs)]

    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        run()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        results = run()
    graph.replay()
    others = leaves(exact(inputs))
    values = reference.lltm_sequence(*others)
    gradients = torch.autograd.grad(sum(value.sum() for value in values), others)
    for actual, value in zip(results, [*values, *gradients]):
        assert_close(actual, value, target, terms=80)  # 20 rows, four steps


CLAIMS = {
    "forward": forward,
    "backward": backward,
    "double backward": double_backward,
    "forward-mode AD": forward_mode,
    "vmap": vmap,
    "compile": compiled,
    "export": export,
    "autocast": autocast,
    "CUDA graph": cuda_graph,
}


def test_zoneout_under_a_half_default_dtype():
    """bfloat16 has 256 numbers below 1: none of them is less than 0.001 but zero."""
    layer = LLTMSequence(1, 100, zoneout=(0.002, 0.998))
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.bfloat16)
    try:
        masks = [layer._zoneout_mask(p, torch.zeros(1000, 1)) for p in layer.zoneout]
    finally:
        torch.set_default_dtype(before)
    shares = [mask.double().mean().item() for mask in masks]
    assert shares == pytest.approx([0.002, 0.998], abs=0.0005)


def test_every_feature_of_the_cell_is_tried():
    assert list(CLAIMS) == list(CELL_CLAIMS)


@pytest.mark.parametrize("case", sorted(CELLS - NO_SUCH_THING), ids="-".join)
def test_the_table_is_true(case):
    device, dtype, feature = case
    cell = table()[device, dtype][feature]
    kind = getattr(torch, dtype)
    assert cell != "yes" or kind in TOLERANCES
    target = Target(DEVICES[device], kind, *TOLERANCES.get(kind, (0, 0)))
    require_target(target)
    if cell == "yes":
        CLAIMS[feature](target)
    else:
        with pytest.raises(RuntimeError, match="lltm_decoupled|float32"):
            CLAIMS[feature](target)

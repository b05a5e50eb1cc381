"""docs/features.md says what works where; here every cell of its table is tried.

A new dtype or feature is a row or column there, and a column needs a function in CLAIMS.
"""

import pytest
import torch
from conftest import TOLERANCES, Target, require_target
from helpers import (
    OUTPUTS,
    assert_close,
    check_against_reference,
    draw,
    draw_grads,
    exact,
    leaves,
)
from repository import read

from lltm_decoupled import LLTM, lltm_cell, reference

# torch itself calls what it has deprecated for forward mode.
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning:torch.*")
DEVICES = {"cpu": "cpu", "cuda": "cuda:0"}
DTYPES = ("float64", "float32", "float16", "bfloat16")


def table():
    """{(device, dtype): {feature: cell}} of the document."""
    lines = [line for line in read("docs/features.md").splitlines() if line.startswith("|")]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    head, _, *body = rows
    return {tuple(row[:2]): dict(zip(head[2:], row[2:])) for row in body}


def need(has_it, what):
    if not has_it:
        pytest.skip(f"torch {torch.__version__} has no {what}")


def forward(target):
    inputs = draw(target)
    for name, output, value in zip(
        OUTPUTS, lltm_cell(*inputs), reference.lltm_cell(*exact(inputs))
    ):
        assert output.dtype == target.dtype
        assert_close(output, value, target, name)


def backward(target):
    check_against_reference(lltm_cell, draw(target), target)


def double_backward(target):
    def second(function, inputs):
        inputs = leaves(inputs)
        new_h, new_cell = function(*inputs)
        (d_input,) = torch.autograd.grad((new_h * new_cell).sum(), inputs[0], create_graph=True)
        return torch.autograd.grad((d_input**2).sum(), inputs)

    inputs = draw(target)
    for actual, value in zip(second(lltm_cell, inputs), second(reference.lltm_cell, exact(inputs))):
        assert_close(actual, value, target, terms=15)  # sums over batch and features


def forward_mode(target):
    def tangents(function, inputs, direction):
        with torch.autograd.forward_ad.dual_level():
            dual = torch.autograd.forward_ad.make_dual(inputs[3], direction)
            outputs = function(*inputs[:3], dual, inputs[4])
            return [torch.autograd.forward_ad.unpack_dual(t).tangent for t in outputs]

    inputs = draw(target)
    direction = torch.ones_like(inputs[3])
    expected = tangents(reference.lltm_cell, exact(inputs), exact([direction])[0])
    for actual, value in zip(tangents(lltm_cell, inputs, direction), expected):
        assert_close(actual, value, target)


def vmap(target):
    need(hasattr(torch, "func"), "torch.func")
    inputs, other = draw(target), draw(target)
    states = torch.stack([inputs[3], other[3]])
    mapped = torch.func.vmap(lambda h: lltm_cell(*inputs[:3], h, inputs[4])[0])(states)
    for new_h, state in zip(mapped, states):
        expected = reference.lltm_cell(*exact([*inputs[:3], state, inputs[4]]))[0]
        assert_close(new_h, expected, target)


def need_compile():
    library = getattr(torch, "library", None)
    need(hasattr(library, "register_fake"), "torch.library.register_fake")


def compiled(target):
    need_compile()
    torch._dynamo.reset()
    function = torch.compile(lltm_cell, fullgraph=True, dynamic=True, backend="aot_eager")
    for batch_size in (5, 3):
        check_against_reference(function, draw(target, batch_size), target)


def export(target):
    need_compile()
    inputs = draw(target)
    batch = torch.export.Dim("batch")
    shapes = ({0: batch}, None, None, {0: batch}, {0: batch})

    class Step(torch.nn.Module):
        def forward(self, input, weights, bias, old_h, old_cell):
            return lltm_cell(input, weights, bias, old_h, old_cell)

    program = torch.export.export(Step(), tuple(inputs), dynamic_shapes=shapes)
    inputs = draw(target, batch_size=3)
    for actual, value in zip(program.module()(*inputs), reference.lltm_cell(*exact(inputs))):
        assert_close(actual, value, target)


def autocast(target):
    """A linear layer gives a half-precision input to a module of float32 parameters."""
    device_type = torch.device(target.device).type
    layer = torch.nn.Linear(3, 3, device=target.device, dtype=target.dtype)
    module = LLTM(3, 4, device=target.device, dtype=target.dtype)
    with torch.autocast(device_type, dtype=torch.bfloat16):
        input = layer(draw(target)[0])
        assert input.dtype == torch.bfloat16
        outputs = module(input)
    state = torch.zeros(len(input), 4, dtype=torch.float64)
    values = exact([input, module.weights, module.bias]) + [state, state]
    for output, value in zip(outputs, reference.lltm_cell(*values)):
        # bfloat16 keeps 8 bits of what goes into the products and of what comes out of them
        assert_close(output, value, target._replace(rtol=0.02, atol=0.02))
    sum(output.sum() for output in outputs).backward()
    assert all(parameter.grad.dtype == target.dtype for parameter in module.parameters())


def cuda_graph(target):
    inputs, grads = leaves(draw(target)), draw_grads(draw(target))
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        torch.autograd.grad(lltm_cell(*inputs), inputs, grads)
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        outputs = lltm_cell(*inputs)
        gradients = torch.autograd.grad(outputs, inputs, grads)
    graph.replay()
    others = leaves(exact(inputs))
    values = reference.lltm_cell(*others)
    expected = values + torch.autograd.grad(values, others, exact(grads))
    for actual, value in zip(outputs + gradients, expected):
        assert_close(actual, value, target, terms=5)


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


CELLS = {(device, dtype, f) for device in DEVICES for dtype in DTYPES for f in CLAIMS}
# A CUDA graph on a CPU; and autocast, which leaves float64 alone.
NO_SUCH_THING = {case for case in CELLS if case[::2] == ("cpu", "CUDA graph")}
NO_SUCH_THING |= {case for case in CELLS if case[1:] == ("float64", "autocast")}


def test_the_table_is_complete():
    assert sorted(table()) == sorted((device, dtype) for device in DEVICES for dtype in DTYPES)
    for row, cells in table().items():
        assert list(cells) == list(CLAIMS), row
        for feature, cell in cells.items():
            assert cell in (("-",) if (*row, feature) in NO_SUCH_THING else ("yes", "no")), row


@pytest.mark.parametrize("case", sorted(CELLS - NO_SUCH_THING), ids="-".join)
def test_the_table_is_true(case):
    device, dtype, feature = case
    cell = table()[device, dtype][feature]
    kind = getattr(torch, dtype)
    # without tolerances a dtype must not be claimed: a comparison would let anything through
    assert cell != "yes" or kind in TOLERANCES
    target = Target(DEVICES[device], kind, *TOLERANCES.get(kind, (0, 0)))
    require_target(target)
    if cell == "yes":
        CLAIMS[feature](target)
    else:
        with pytest.raises(RuntimeError, match="lltm_decoupled|float32"):
            CLAIMS[feature](target)

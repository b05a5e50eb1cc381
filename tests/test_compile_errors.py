"""Illegal calls inside a compiled graph are refused as outside, also where sizes are symbols."""

import pytest
import torch
from helpers import all_equal, draw
from test_compile import needs_compile

from lltm_decoupled import lltm_cell, lltm_sequence

pytestmark = [needs_compile, pytest.mark.filterwarnings("ignore::DeprecationWarning:torch.*")]


def test_errors_are_the_same_when_compiled(target):
    """The shape function refuses what the kernel refuses, and the next legal call works."""
    torch._dynamo.reset()
    compiled = torch.compile(lltm_cell, fullgraph=True, backend="aot_eager")
    inputs = draw(target)
    wrong = [*inputs[:3], inputs[3][:, 1:], inputs[4]]
    with pytest.raises(RuntimeError, match="old_h"):
        compiled(*wrong)
    assert all_equal(compiled(*inputs), lltm_cell(*inputs))


def of_cell(batch_size, **changes):
    shapes = {"input": (batch_size, 3), "weights": (12, 7), "bias": (12,)}
    shapes.update(old_h=(batch_size, 4), old_cell=(batch_size, 4))
    return {**{name: torch.randn(shape) for name, shape in shapes.items()}, **changes}


def of_sequence(batch_size, steps=2, **changes):
    cell = of_cell(batch_size)
    shape = (steps, batch_size, 4)
    tensors = {
        "input": torch.randn(steps, batch_size, 3),
        "weights": cell["weights"],
        "bias": cell["bias"],
        "h0": cell["old_h"],
        "c0": cell["old_cell"],
        "zoneout_h": torch.zeros(shape, dtype=torch.bool),
        "zoneout_c": torch.zeros(shape, dtype=torch.bool),
    }
    return {**tensors, **changes}


def mapped(function):
    def call(input, **others):
        return torch.func.vmap(lambda part: function(part, **others))(torch.stack([input, input]))

    return call


def differentiated(function):
    def call(input, **others):
        return torch.func.grad(lambda input: function(input, **others)[0].sum())(input)

    return call


def autocast(function):
    def call(**arguments):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            return function(**arguments)

    return call


def check(function, make, changes, dynamic):
    """The error of an illegal call by the formula, after two legal ones of other sizes."""
    torch._dynamo.reset()
    compiled = torch.compile(function, backend="aot_eager", dynamic=dynamic)
    compiled(**make(2))
    compiled(**make(5))
    wrong = make(5, **changes)
    with pytest.raises(RuntimeError) as outside:
        function(**wrong)
    message = str(outside.value).splitlines()[0]
    assert message.startswith("lltm_decoupled: expected ")
    with pytest.raises(RuntimeError) as inside:
        compiled(**wrong)
    assert message in str(inside.value)


@pytest.mark.parametrize("dynamic", (None, True))
@pytest.mark.parametrize("transform", (mapped, differentiated, autocast))
def test_of_the_cell(transform, dynamic):
    for changes in (
        {"old_cell": torch.randn(1, 4)},
        {"old_cell": torch.randn(5, 1)},
        {"bias": torch.randn(1)},
        {"bias": torch.randn(5, 12)},
        {"weights": torch.randn(9, 7)},
    ):
        check(transform(lltm_cell), of_cell, changes, dynamic)


@pytest.mark.parametrize("dynamic", (None, True))
@pytest.mark.parametrize("transform", (mapped, differentiated))
def test_of_a_sequence(transform, dynamic):
    for changes in (
        {"h0": torch.randn(1, 4)},
        {"c0": torch.randn(5, 1)},
        {"c0": None},
        {"bias": torch.randn(1)},
        {"zoneout_h": torch.zeros(1, 5, 4, dtype=torch.bool)},
        {"zoneout_c": torch.zeros(2, 1, 1, dtype=torch.bool)},
        {"zoneout_c": torch.zeros(5, 5, 4, dtype=torch.bool)},
        {"input": torch.randn(0, 5, 3), "zoneout_h": None, "zoneout_c": None, "c0": None},
    ):
        check(transform(lltm_sequence), of_sequence, changes, dynamic)

"""Bad input: one error that names the argument, what it got and what was expected; nothing lost."""

import re

import pytest
import torch
from conftest import require_device
from helpers import CALLS, INPUTS, draw, draw_grads, each

import lltm_decoupled

# Where two arguments disagree, either may be blamed.
BATCH, STATE = "input|old_h", "weights|old_h"
RANK_2 = r"\b2\b|2-?D"
WEIGHTS = r"12\D+7|input_features = 3"

# fmt: off
# With B, I, H = 5, 3, 4: argument to replace, its new shape, name in the message, what was expected
SHAPES = [
    ("input",    (3,),       "input",         RANK_2),
    ("input",    (),         "input",         RANK_2),
    ("input",    (1, 5, 3),  "input",         RANK_2),
    ("input",    (6, 3),     BATCH,           r"\b6\b"),
    ("input",    (5, 8),     "input|weights", r"12\D+7"),
    ("input",    (5, 0),     "input|weights", r"12\D+7"),
    ("weights",  (84,),      "weights",       RANK_2),
    ("weights",  (1, 12, 7), "weights",       RANK_2),
    ("weights",  (12, 8),    "weights",       WEIGHTS),
    ("weights",  (12, 6),    "weights",       WEIGHTS),
    ("weights",  (11, 7),    "weights",       WEIGHTS),
    ("weights",  (13, 7),    "weights",       WEIGHTS),
    ("weights",  (7, 12),    "weights",       WEIGHTS),
    ("weights",  (0, 7),     "weights",       WEIGHTS),
    ("weights",  (4, 7),     "weights",       WEIGHTS),
    ("weights",  (9, 7),     "weights",       WEIGHTS),
    ("bias",     (13,),      "bias",          r"\b12\b"),
    ("bias",     (11,),      "bias",          r"\b12\b"),
    ("bias",     (1,),       "bias",          r"\b12\b"),
    ("bias",     (),         "bias",          r"\b12\b"),
    ("bias",     (1, 13),    "bias",          r"\b12\b"),
    ("bias",     (2, 12),    "bias",          r"\b1\D+12\b|\b12\b"),
    ("bias",     (12, 1),    "bias",          r"\b1\D+12\b|\(12"),
    ("bias",     (1, 1, 12), "bias",          r"\b1\D+12\b|\b12\b"),
    ("old_h",    (4,),       "old_h",         r"\b2\b|2-?D|5\D+4"),
    ("old_h",    (1, 5, 4),  "old_h",         r"\b2\b|2-?D|5\D+4"),
    ("old_h",    (6, 4),     BATCH,           r"\b5\b"),
    ("old_h",    (1, 4),     BATCH,           r"\b5\b"),
    ("old_h",    (5, 9),     STATE,           r"\b(27|4|12)\b"),
    ("old_h",    (4, 5),     BATCH,           r"\b5\b"),
    ("old_cell", (4,),       "old_cell",      r"\b2\b|2-?D|5\D+4"),
    ("old_cell", (1, 5, 4),  "old_cell",      r"\b2\b|2-?D|5\D+4"),
    ("old_cell", (6, 4),     "old_cell",      r"5\D+4"),
    ("old_cell", (1, 4),     "old_cell",      r"5\D+4"),
    ("old_cell", (5, 9),     "old_cell",      r"5\D+4"),
    ("old_cell", (5, 1),     "old_cell",      r"5\D+4"),
]
# fmt: on

DTYPE_NAMES = {
    torch.float32: "float32|Float",
    torch.float64: "float64|Double",
    torch.float16: "float16|Half",
    torch.bfloat16: "bfloat16|BFloat16",
    torch.int64: "int64|Long",
    torch.bool: "[bB]ool",
    torch.complex64: "complex64|ComplexFloat",
}
UNSUPPORTED = (torch.int64, torch.bool, torch.complex64)

BACKWARD_INPUTS = (
    "grad_h grad_cell new_cell input_gate output_gate candidate_cell X gate_weights weights"
).split()

# The raw forward is in CALLS too; here it is called bare, as callers of the tutorial do. The module
# checks its own arguments: see below.
FUNCTIONS = {name: call for name, call in CALLS.items() if name != "LLTM"}
FUNCTIONS["forward"] = lltm_decoupled.forward


def numbers(shape):
    return r"\D+".join(str(size) for size in shape) or r"\[\]|\(\)|\b0\b"


def message_of(function, *arguments):
    with pytest.raises((RuntimeError, ValueError, TypeError)) as caught:
        function(*arguments)
    return str(caught.value)


def assert_message(message, *patterns):
    for pattern in patterns:
        assert re.search(pattern, message), f"no {pattern!r} in: {message}"


def word(names):
    return rf"\b({names})\b"


def replaced(values, position, value):
    return list(values[:position]) + [value] + list(values[position + 1 :])


@pytest.fixture
def still_works(target):
    """After the errors of a test a legal call gives the same bits as before."""
    inputs = draw(target)
    before = lltm_decoupled.forward(*inputs)
    yield
    after = lltm_decoupled.forward(*inputs)
    assert all(torch.equal(a, b) for a, b in zip(before, after))


@pytest.mark.parametrize("name, shape, blamed, expected", SHAPES, ids=str)
def test_shapes(name, shape, blamed, expected, target, still_works):
    inputs = draw(target)
    wrong = torch.zeros(shape, dtype=target.dtype, device=target.device)
    arguments = replaced(inputs, INPUTS.index(name), wrong)
    for function in FUNCTIONS.values():
        message = message_of(function, *arguments)
        assert_message(message, word(blamed), expected)
        if "|" not in blamed:
            assert_message(message, numbers(shape))


@pytest.mark.parametrize("name", INPUTS)
def test_one_argument_of_another_dtype(name, target, still_works):
    inputs = draw(target)
    other = torch.float32 if target.dtype == torch.float64 else torch.float64
    position = INPUTS.index(name)
    arguments = replaced(inputs, position, inputs[position].to(other))
    blamed = "|".join(INPUTS) if name == "input" else name  # input may be what the others follow
    for function in FUNCTIONS.values():
        message = message_of(function, *arguments)
        assert_message(message, word(blamed), DTYPE_NAMES[other], DTYPE_NAMES[target.dtype])


@pytest.mark.parametrize("dtype", UNSUPPORTED, ids=str)
def test_unsupported_dtypes(dtype, target, still_works):
    arguments = each(lambda t: t.to(dtype), draw(target))
    supported = (DTYPE_NAMES[torch.float32], DTYPE_NAMES[torch.float64])
    for function in FUNCTIONS.values():
        message = message_of(function, *arguments)
        assert_message(message, word("input"), DTYPE_NAMES[dtype], *supported)
        if target.device != "cpu":
            on_cpu = message_of(function, *[t.cpu() for t in arguments])
            assert message.replace(target.device, "cpu") == on_cpu


@pytest.mark.parametrize("name", INPUTS)
def test_mixed_devices(name, target, still_works):
    """Each argument in turn on the CPU among CUDA tensors, and the other way round."""
    require_device("cuda:0")
    inputs = draw(target)
    other = "cuda:0" if target.device == "cpu" else "cpu"
    position = INPUTS.index(name)
    arguments = replaced(inputs, position, inputs[position].to(other))
    for function in FUNCTIONS.values():
        message = message_of(function, *arguments)
        assert_message(message, word("|".join(INPUTS)), r"\bcpu\b", r"\bcuda\b")


@pytest.mark.parametrize("position", range(len(BACKWARD_INPUTS)), ids=BACKWARD_INPUTS)
def test_raw_backward(position, target, still_works):
    inputs = draw(target)
    legal = draw_grads(inputs) + lltm_decoupled.forward(*inputs)[1:] + [inputs[1]]
    name, tensor = BACKWARD_INPUTS[position], legal[position]
    rows, columns = tensor.shape
    other = torch.float32 if target.dtype == torch.float64 else torch.float64
    # The first gradient sets the sizes: then the first of the others that disagrees is named.
    blamed = "|".join(BACKWARD_INPUTS) if name in ("grad_h", "X") else name
    for shape in (
        (rows + 1, columns),
        (rows, columns + 1),
        (rows - 1, columns),
        (rows, columns - 1),
        (1, columns),
        (columns,),
        (1, rows, columns),
        (columns, rows),
    ):
        if name == "weights" and shape == (rows, columns + 1):
            blamed = "weights|X"
        wrong = torch.zeros(shape, dtype=target.dtype, device=target.device)
        message = message_of(lltm_decoupled.backward, *replaced(legal, position, wrong))
        assert_message(message, word(blamed))
    message = message_of(lltm_decoupled.backward, *replaced(legal, position, tensor.to(other)))
    assert_message(message, word(blamed), DTYPE_NAMES[other], DTYPE_NAMES[target.dtype])


def test_things_that_are_no_tensors(target, still_works):
    inputs = draw(target)
    for wrong in (None, [1.0], "text", 3):
        for position, name in enumerate(INPUTS):
            if wrong is None and name == "bias":
                continue
            for function in FUNCTIONS.values():
                message_of(function, *replaced(inputs, position, wrong))


def test_sparse_tensors_have_no_pointer_to_take(target, still_works):
    inputs = draw(target)
    for position in range(len(INPUTS)):
        sparse = inputs[position].to_sparse()
        for function in FUNCTIONS.values():
            message_of(function, *replaced(inputs, position, sparse))


def test_a_module_keeps_its_state(target, still_works):
    module = lltm_decoupled.LLTM(3, 4, device=target.device, dtype=target.dtype)
    before = {name: tensor.clone() for name, tensor in module.state_dict().items()}
    input, _, _, old_h, old_cell = draw(target)
    state = (old_h, old_cell)
    for arguments, blamed in (
        ((input[0], state), "input"),
        ((input[None], state), "input"),
        ((input[None],), "input"),  # no state: one of zeros must not be made from a wrong input
        ((input[0, 0],), "input"),
        ((input, (old_h[0], old_cell[0])), "h and cell"),
        ((input[0], (old_h[0], old_cell)), "h and cell"),
        ((input[0], (old_h[:, 0], old_cell[0])), "h"),
        ((input[0, 1:],), "input|weights"),
        ((input.long(),), "input"),
        ((torch.cat([input, input], dim=1), state), "input|weights"),
        ((torch.cat([input, input]), state), "h"),
        ((input.long(), state), "input"),
        ((input, (old_h[:, 1:], old_cell)), "h"),
        ((input, (old_h, old_cell[:, 1:])), "cell"),
        ((input, (old_h, old_cell[1:])), "cell"),
        ((input, (old_h.long(), old_cell)), "h"),
        ((input, (old_h, old_cell.long())), "cell"),
        ((input, (old_h.to("meta"), old_cell)), "h"),
        ((input, (old_h, old_cell.to("meta"))), "cell"),
        ((input, (old_h.to_sparse(), old_cell)), "h"),
        ((input, (old_h, old_cell.to_sparse())), "cell"),
    ):
        assert_message(message_of(module, *arguments), word(blamed))
    for wrong_state in ((old_h,), (old_h, old_cell, old_h), old_h, 3):
        message_of(module, input, wrong_state)
    after = module.state_dict()
    assert before.keys() == after.keys()
    assert all(torch.equal(before[name], after[name]) for name in before)
    assert torch.isfinite(module(input, state)[0]).all()

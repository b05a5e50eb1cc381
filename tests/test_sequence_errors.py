"""Bad input of a sequence: one error that names the argument and what was expected."""

import pytest
import torch
from conftest import require_device
from sequence_helpers import INPUTS, draw_masks, draw_sequence, pack, ragged
from test_cell_errors import (
    DTYPE_NAMES,
    UNSUPPORTED,
    assert_message,
    message_of,
    numbers,
    replaced,
    word,
)

from lltm_decoupled import lltm_sequence

# Where two arguments disagree, either may be blamed.
BATCH, STATE = "input|h0", "weights|h0"
RANK_3, RANK_2 = r"\b3\b", r"\b2\b"
WEIGHTS = r"12\D+7|input_features = 3"

# fmt: off
# With T, B, I, H = 4, 5, 3, 4: argument to replace, its new shape, name in the message, expected
SHAPES = [
    ("input",   (3,),        "input",         RANK_3),
    ("input",   (5, 3),      "input",         RANK_3),
    ("input",   (1, 4, 5, 3), "input",        RANK_3),
    ("input",   (4, 6, 3),   BATCH,           r"\b6\b"),
    ("input",   (5, 4, 3),   BATCH,           r"\b4\b"),  # batch first by mistake
    ("input",   (4, 5, 8),   "input|weights", "input_features = 8"),
    ("weights", (84,),       "weights",       RANK_2),
    ("weights", (12, 8),     "weights",       WEIGHTS),
    ("weights", (11, 7),     "weights",       WEIGHTS),
    ("weights", (16, 7),     "weights",       WEIGHTS),   # an LSTM's four gates
    ("weights", (7, 12),     "weights",       WEIGHTS),
    ("bias",    (13,),       "bias",          r"\b12\b"),
    ("bias",    (),          "bias",          r"\b12\b"),
    ("bias",    (12, 1),     "bias",          r"\b12\b"),
    ("bias",    (1, 1, 12),  "bias",          r"\b12\b"),
    ("h0",      (4,),        "h0",            RANK_2),
    ("h0",      (1, 5, 4),   "h0",            RANK_2),    # as nn.LSTM takes it
    ("h0",      (6, 4),      BATCH,           r"\b5\b"),
    ("h0",      (4, 4),      BATCH,           r"\b5\b"),  # steps for the batch
    ("h0",      (1, 4),      BATCH,           r"\b5\b"),
    ("h0",      (5, 9),      STATE,           r"5\D+4"),
    ("c0",      (4,),        "c0",            r"5\D+4"),
    ("c0",      (1, 5, 4),   "c0",            r"5\D+4"),
    ("c0",      (6, 4),      "c0",            r"5\D+4"),
    ("c0",      (1, 4),      "c0",            r"5\D+4"),
    ("c0",      (5, 9),      "c0",            r"5\D+4"),
]

# What batch_sizes may be for 12 rows, of which the first step has 5
BATCH_SIZES = [
    ([5, 4, 2, 2],     r"\b12\b"),         # the sum is 13
    ([5, 4, 2],        r"\b12\b"),
    ([5, 4, 3, 0],     "positive"),
    ([5, 4, 4, -1],    "positive"),
    ([5, 3, 4],        "grow"),
    ([4, 4, 4],        r"\b5\b"),          # begins with another batch
    ([6, 4, 2],        r"\b5\b"),
    ([],               r"\b12\b|begin"),
    ([2**62, 2**62, 2**62, 2**62, 12], ""),   # the sum would overflow to 12
]
# fmt: on


def full(shape, target, value=0.0):
    return torch.full(shape, value, dtype=target.dtype, device=target.device)


@pytest.fixture
def still_works(target):
    """After the errors of a test a legal call gives the same bits as before."""
    inputs = draw_sequence(target)
    before = lltm_sequence(*inputs)
    yield
    assert all(torch.equal(a, b) for a, b in zip(before, lltm_sequence(*inputs)))


def messages(*arguments, **options):
    """The message, which is the same with and without a gradient, recomputed or not."""
    texts = [message_of(lambda *a: lltm_sequence(*a, **options), *arguments)]
    texts.append(message_of(lambda *a: lltm_sequence(*a, recompute=True, **options), *arguments))
    leaves = [
        t.detach().requires_grad_() if isinstance(t, torch.Tensor) and t.is_floating_point() else t
        for t in arguments
    ]
    texts.append(message_of(lambda *a: lltm_sequence(*a, **options), *leaves))
    assert len(set(texts)) == 1
    return texts[0]


@pytest.mark.parametrize("name, shape, blamed, expected", SHAPES, ids=str)
def test_shapes(name, shape, blamed, expected, target, still_works):
    arguments = replaced(draw_sequence(target), INPUTS.index(name), full(shape, target))
    message = messages(*arguments)
    assert_message(message, word(blamed), expected)
    if "|" not in blamed:
        assert_message(message, numbers(shape))


@pytest.mark.parametrize("name", INPUTS)
def test_one_argument_of_another_dtype(name, target, still_works):
    inputs = draw_sequence(target)
    other = torch.float32 if target.dtype == torch.float64 else torch.float64
    position = INPUTS.index(name)
    message = messages(*replaced(inputs, position, inputs[position].to(other)))
    blamed = "|".join(INPUTS) if name == "input" else name
    assert_message(message, word(blamed), DTYPE_NAMES[other], DTYPE_NAMES[target.dtype])


def test_unsupported_dtypes(target, still_works):
    for dtype in UNSUPPORTED:
        message = messages(*[t.to(dtype) for t in draw_sequence(target)])
        assert_message(message, word("input"), DTYPE_NAMES[dtype], DTYPE_NAMES[torch.float64])


def test_half_a_state(target, still_works):
    inputs, sizes = draw_sequence(target), ragged(4, 5)
    message = messages(*replaced(inputs, 4, None))
    assert_message(message, "c0 to be a tensor, as the other state is given, got None")
    message = messages(*pack(inputs, sizes)[:3], None, None, batch_sizes=sizes)
    assert_message(message, "h0 to be a tensor, as batch_sizes is given, got None")


@pytest.mark.parametrize("name", INPUTS)
def test_mixed_devices(name, target, still_works):
    require_device("cuda:0")
    inputs = draw_sequence(target)
    other = "cuda:0" if target.device == "cpu" else "cpu"
    position = INPUTS.index(name)
    message = messages(*replaced(inputs, position, inputs[position].to(other)))
    assert_message(message, word("|".join(INPUTS)), r"\bcpu\b", r"\bcuda\b")


@pytest.mark.parametrize("name", INPUTS)
def test_a_meta_tensor_among_real_ones(name, target, still_works):
    """It has no memory: its pointer must not be taken."""
    inputs = draw_sequence(target)
    position = INPUTS.index(name)
    inputs[position] = inputs[position].to("meta")
    with pytest.raises(RuntimeError, match="meta"):
        lltm_sequence(*inputs)


@pytest.mark.parametrize("sizes, expected", BATCH_SIZES, ids=str)
def test_values_of_batch_sizes(sizes, expected, target, still_works):
    inputs = pack(draw_sequence(target), torch.tensor([5, 4, 2, 1]))
    message = messages(*inputs, batch_sizes=torch.tensor(sizes, dtype=torch.int64))
    assert_message(message, word("batch_sizes"), expected)


def test_batch_sizes_of_another_kind(target, still_works):
    batch_sizes = ragged(4, 5)
    inputs = pack(draw_sequence(target), batch_sizes)
    for wrong in (batch_sizes.int(), batch_sizes.double(), batch_sizes[None], batch_sizes[0]):
        message = messages(*inputs, batch_sizes=wrong)
        assert_message(message, word("batch_sizes"), "int64", "CPU")
    if target.device != "cpu":
        message = messages(*inputs, batch_sizes=batch_sizes.to(target.device))
        assert_message(message, word("batch_sizes"), "CPU")
    assert_message(messages(*draw_sequence(target), batch_sizes=batch_sizes), word("input"), RANK_2)
    fewer = [*inputs[:3], inputs[3][:4], inputs[4][:4]]
    assert_message(messages(*fewer, batch_sizes=batch_sizes), word("batch_sizes"), r"\b4\b")


def test_a_strided_vector_of_batch_sizes_is_legal(target):
    """Every second number of a longer one: the numbers between must not be read."""
    batch_sizes = ragged(4, 5)
    inputs = pack(draw_sequence(target), batch_sizes)
    expected = lltm_sequence(*inputs, batch_sizes=batch_sizes)
    strided = torch.stack([batch_sizes, torch.full((4,), 10**6)], 1)[:, 0]
    actual = lltm_sequence(*inputs, batch_sizes=strided)
    assert all(torch.equal(a, b) for a, b in zip(actual, expected))


@pytest.mark.parametrize("name", ["zoneout_h", "zoneout_c"])
def test_masks(name, target, still_works):
    inputs = draw_sequence(target)
    mask = draw_masks(inputs)[name]
    for wrong in (mask[0], mask[:3], mask[:, :1], mask[..., :1], mask.reshape(20, 4), mask[None]):
        message = messages(*inputs, **{name: wrong})
        assert_message(message, word(name), r"4\D+5\D+4", numbers(wrong.shape))
    for wrong in (mask.to(target.dtype), mask.to(torch.uint8)):
        assert_message(messages(*inputs, **{name: wrong}), word(name), "[bB]ool")
    if target.device != "cpu":
        assert_message(messages(*inputs, **{name: mask.cpu()}), word(name), "cpu", "cuda")
    batch_sizes = ragged(4, 5)
    message = messages(*pack(inputs, batch_sizes), batch_sizes=batch_sizes, **{name: mask})
    assert_message(message, word(name), rf"{int(batch_sizes.sum())}\D+4")


def test_things_that_are_no_tensors(target, still_works):
    inputs = draw_sequence(target)
    for wrong in (None, [1.0], "text", 3):
        for position, name in enumerate(INPUTS):
            if wrong is not None or name != "bias":
                message_of(lltm_sequence, *replaced(inputs, position, wrong))
    for options in ({"batch_sizes": [5, 5, 5, 5]}, {"zoneout_h": 0.5}, {"reverse": "yes"}):
        message_of(lambda *a, options=options: lltm_sequence(*a, **options), *inputs)
    with pytest.raises(TypeError):
        lltm_sequence(*inputs, None)  # what follows the five is by name only


def test_sparse_tensors_have_no_pointer_to_take(target, still_works):
    inputs = draw_sequence(target)
    for position in range(len(INPUTS)):
        messages_of = replaced(inputs, position, inputs[position].to_sparse())
        message_of(lltm_sequence, *messages_of)


@pytest.mark.parametrize(
    "name", ["grad_output", "grad_h_n", "grad_c_n", "output", "activations", "cells"]
)
def test_the_backward_half(name, target, still_works):
    """Its tensors come from outside too, through torch.ops."""
    ops = torch.ops.lltm_decoupled
    inputs = draw_sequence(target)
    options = (None, False, False, None, None)
    outputs = ops._sequence_forward(*inputs, *options)
    names = ["grad_output", "grad_h_n", "grad_c_n", *INPUTS, "output", "activations", "cells"]
    legal = [*outputs[:3], *inputs, outputs[0], *outputs[3:]]

    def backward(*tensors):
        return ops._sequence_backward(*tensors, *options, [True] * 5)

    backward(*legal)
    position = names.index(name)
    tensor = legal[position]
    other = torch.float64 if target.dtype == torch.float32 else torch.float32
    for wrong in (tensor[..., 1:], tensor[1:], tensor[None], tensor.to(other)):
        assert_message(message_of(backward, *replaced(legal, position, wrong)), word(name))


def test_errors_on_meta_tensors_are_the_same(target):
    """What a trace refuses the kernel refuses, and no other."""
    inputs = draw_sequence(target)
    for name, shape, blamed, _ in SHAPES:
        arguments = replaced(inputs, INPUTS.index(name), full(shape, target))
        message = message_of(lltm_sequence, *[t.to("meta") for t in arguments])
        assert_message(message, word(blamed))
    for name, mask in draw_masks(inputs).items():
        for wrong in (mask[:3], mask.double()):
            meta = [t.to("meta") for t in inputs]
            options = {name: wrong.to("meta")}
            message = message_of(lambda *a, o=options: lltm_sequence(*a, **o), *meta)
            assert_message(message, word(name))

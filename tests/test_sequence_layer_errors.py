"""What LLTMSequence refuses, when it is made and when it is called: one error that names it.

And what no function takes for a flag.
"""

import functools
import re

import numpy
import pytest
import torch
from layer_helpers import draw_layer_call, make
from test_cell_errors import assert_message, message_of, numbers, word
from torch.nn.utils.rnn import PackedSequence, pack_sequence

from lltm_decoupled import LLTM, LLTMSequence, jit, lltm_sequence, reference

INTEGERS = (0, -1, 2.5, "3", None, True, torch.tensor(True), torch.tensor(3.0))
INTEGERS += (torch.tensor([3, 4]), torch.ones((), dtype=torch.int64, device="meta"))
PROBABILITIES = (-0.1, 1.1, float("nan"), "0.5", None, True, 1j, (0.5,), torch.tensor(0.5))
FLAGS = (0, 1, "yes", None, 0.0, [], numpy.bool_(True), torch.tensor(1.5))
FLAGS += (torch.tensor([True, False]), torch.ones((), dtype=torch.bool, device="meta"))
WRONG = [
    *((name, v) for name in ("input_size", "hidden_size", "num_layers") for v in INTEGERS),
    *(("dropout", value) for value in PROBABILITIES),
    *(("zoneout", (value, 0.0)) for value in PROBABILITIES),
    *(("zoneout", (0.0, value)) for value in PROBABILITIES),
    *(("zoneout", value) for value in (0.5, None, "ab", (), (0.1,), (0.1, 0.1, 0.1))),
    *((name, v) for name in "bias batch_first bidirectional recompute".split() for v in FLAGS),
]


def test_what_it_is_made_of():
    for name, wrong in WRONG:
        options = dict({"input_size": 3, "hidden_size": 4, "num_layers": 2}, **{name: wrong})
        with pytest.raises((ValueError, TypeError)) as caught:
            LLTMSequence(**options)
        shown = wrong if name != "zoneout" or not isinstance(wrong, tuple) else ""
        assert_message(str(caught.value), word(name), r"must be .*, got ")
        if isinstance(wrong, (int, float, str)):
            assert repr(shown) in str(caught.value)
    assert LLTMSequence(3, 4, 2, dropout=1, zoneout=[0, 1]).zoneout == (0.0, 1.0)


@pytest.mark.parametrize("wrong", FLAGS, ids=repr)
def test_flags_of_functions_are_bools(wrong):
    """As nn.LSTM has it; torch's operators take whatever has a truth value."""
    h = torch.zeros(5, 4)
    tensors = torch.randn(6, 5, 3), torch.randn(12, 7), torch.randn(12), h, h
    ours = functools.partial(lltm_sequence, *tensors)
    plain = functools.partial(reference.lltm_sequence, *tensors)
    for function, name in (
        (ours, "reverse"),
        (ours, "recompute"),
        (plain, "reverse"),
        (jit.load, "verbose"),
        (jit.load, "with_cuda"),
    ):
        if (name, wrong) == ("with_cuda", None):
            continue  # its default
        with pytest.raises(TypeError) as caught:
            function(**{name: wrong})
        assert str(caught.value) == f"{name} must be a bool, got {wrong!r}"
    layer = LLTMSequence(3, 4)
    layer.recompute = wrong
    with pytest.raises(TypeError, match="^recompute must be a bool"):
        layer(tensors[0])


def test_any_kind_of_number_will_do():
    module = LLTMSequence(
        numpy.int64(3), numpy.int32(4), numpy.uint8(2), dropout=numpy.float32(0.5)
    )
    assert [type(getattr(module, n)) for n in ("input_size", "hidden_size", "num_layers")] == [
        int
    ] * 3
    assert type(module.dropout) is float


@pytest.mark.parametrize("size", [10**30, 2**62, 2**40], ids=str)
def test_sizes_that_no_memory_holds(size):
    for sizes in ((size, 2**30), (2**30, size)):
        for module in (LLTM, LLTMSequence):
            with pytest.raises(ValueError, match="^no memory holds weights.* of shape") as caught:
                module(*sizes)
            assert "\n" not in str(caught.value)


def test_no_projections():
    for wrong in (2, False, None, torch.tensor([0, 0])):
        with pytest.raises(TypeError, match="proj_size"):
            LLTMSequence(3, 4, proj_size=wrong)


@pytest.fixture
def module(target):
    """A layer of six states (3 * 2), and the check that errors leave it as it was."""
    module = make(target, 3, 4, 3, bidirectional=True)
    call = draw_layer_call(module)
    before = module(*call)[0]
    yield module
    assert torch.equal(module(*call)[0], before)


def test_states(module, target):
    input, (h0, c0) = draw_layer_call(module, steps=6, batch_size=5)
    assert h0.shape == (6, 5, 4)
    wrongs = [
        h0.transpose(0, 1),  # batch first, which states never are
        h0[:, :1].expand(6, 6, 4),  # steps for the batch
        h0[:3],  # one direction
        h0[:2],  # one layer
        torch.cat([h0, h0]),
        h0[0],
        h0[:, 0],
        h0[None],
        h0[..., :3],
        h0[:, :1],
    ]
    for wrong in wrongs:
        for name, state in (("h0", (wrong, c0)), ("c0", (h0, wrong))):
            message = message_of(module, input, state)
            assert_message(message, word(name), r"6\D+5\D+4", numbers(wrong.shape), "num_layers")


def test_states_of_one_row(module, target):
    input, (h0, c0) = draw_layer_call(module)
    for wrong in (h0, h0[:, :1], h0[:3, 0], h0[0, 0], h0[:, 0, :3]):
        for name, state in (("h0", (wrong, c0[:, 0])), ("c0", (h0[:, 0], wrong))):
            message = message_of(module, input[:, 0], state)
            assert_message(message, word(name), r"6\D+4", numbers(wrong.shape))


def test_states_of_a_packed_batch(module, target):
    input, (h0, c0) = draw_layer_call(module)
    for in_order in (True, False):
        packed = pack_sequence([input[:n, 0] for n in (4, 3, 1)], enforce_sorted=in_order)
        for wrong in (h0, h0[:, :4], h0[:, 0], h0[:3, :3], h0[:, :3].transpose(0, 1)):
            message = message_of(module, packed, (wrong, c0[:, :3]))
            assert_message(message, word("h0"), r"6\D+3\D+4", numbers(wrong.shape))


def test_batch_and_steps_swapped(target):
    """A state of (1, 100, H) fits an input of (1, 100, I), and not one of (100, 1, I)."""
    module = make(target)
    input, state = draw_layer_call(module, steps=1, batch_size=100)
    assert module(input, state)[0].shape == (1, 100, 4)
    message = message_of(module, input.transpose(0, 1), state)
    assert_message(message, word("h0"), r"1\D+1\D+4", r"1\D+100\D+4")
    swapped = make(target, batch_first=True)
    assert_message(message_of(swapped, input, state), word("h0"))


def test_what_is_no_state(module, target):
    input, (h0, c0) = draw_layer_call(module)
    for wrong in (h0, (h0,), (h0, c0, h0), (h0, None), (None, c0), h0.tolist(), 3, "hc", {}, ()):
        with pytest.raises(TypeError, match=r"state must be a pair of tensors \(h0, c0\).*got"):
            module(input, wrong)


def test_inputs(module, target):
    input, state = draw_layer_call(module)
    for wrong in (input[0, 0], input[0, 0, 0], input[None], input[None, None]):
        for arguments in ((wrong, state), (wrong,)):
            message = message_of(module, *arguments)
            assert_message(message, word("input"), "2 or 3 dimensions", numbers(wrong.shape))
    for wrong in (input[..., :2], torch.cat([input, input], -1), input[..., :0], input[0, :, :2]):
        message = message_of(module, wrong)
        assert_message(message, "input_size = 3", rf"got {wrong.shape[-1]}", numbers(wrong.shape))
    for wrong in (None, input.tolist(), "text", 3, (input, input)):
        message = message_of(module, wrong)
        assert_message(message, "input must be a tensor or a PackedSequence", type(wrong).__name__)
    narrow = make(target, 1, 4)
    assert_message(message_of(narrow, input), "input_size = 1 feature, got 3 in shape")
    packed = pack_sequence([input[:, 0, :2], input[:2, 0, :2]])
    assert_message(message_of(module, packed), "input_size = 3", "got 2")
    flat = PackedSequence(input[0, :, 0], torch.tensor([3, 2]))
    assert_message(message_of(module, flat), word("input"), "2 dimensions")
    odd = PackedSequence(input[0], torch.tensor([3, 1]))  # four rows of five
    assert_message(message_of(module, odd), word("batch_sizes"), r"\b5\b", r"\b4\b")


def test_dtypes(module, target):
    input, state = draw_layer_call(module)
    other = torch.float32 if target.dtype == torch.float64 else torch.float64
    for arguments in ((input.to(other), state), (input.to(other),), (input.long(), state)):
        assert_message(message_of(module, *arguments), word("input"), "dtype")
    for number, name in enumerate(("h0", "c0")):
        wrong = [part.to(other) if i == number else part for i, part in enumerate(state)]
        assert_message(message_of(module, input, wrong), word(name), "dtype")


def test_devices(module, target):
    input, state = draw_layer_call(module)
    other = "meta" if target.device == "cpu" else "cpu"
    if other == "meta" and not hasattr(torch, "library"):
        pytest.skip(f"torch {torch.__version__} has no torch.library for meta tensors")
    for arguments in (
        (input.to(other), state),
        (input, (state[0].to(other), state[1])),
        (input, (state[0], state[1].to(other))),
        (input.to(other),),
    ):
        assert_message(message_of(module, *arguments), r"input|h0|c0", "device", other)


@pytest.mark.parametrize(
    "name, value",
    [("zoneout", value) for value in ((0.0, 5.0), (0.1,), None, 0.5, ("a", 0), float("nan"))]
    + [("dropout", value) for value in (5.0, float("nan"), "x", None)],
    ids=str,
)
def test_a_probability_that_is_set_later(name, value):
    layer = LLTMSequence(3, 4, num_layers=2)
    setattr(layer, name, value)
    with pytest.raises(ValueError, match=f"^{name} must .* got " + re.escape(repr(value))):
        layer(torch.ones(2, 1, 3))


def test_packed_sizes_of_another_shape():
    packed = pack_sequence([torch.ones(2, 3), torch.ones(1, 3)])
    wrong = PackedSequence(packed.data, packed.batch_sizes[None])
    with pytest.raises(RuntimeError, match=r"expected batch_sizes .* got shape \(1, 2\)"):
        LLTMSequence(3, 4)(wrong)

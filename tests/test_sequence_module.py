"""LLTMSequence follows nn.LSTM: shapes of everything, layers, directions, packed sequences."""

import itertools

import pytest
import torch
from helpers import all_equal, exact
from layer_helpers import NAN, check_layer, draw_layer_call, make
from torch import nn
from torch.nn.utils.rnn import (
    PackedSequence,
    pack_padded_sequence,
    pack_sequence,
    pad_packed_sequence,
)

from lltm_decoupled import LLTM, LLTMSequence, lltm_sequence, reference

LENGTHS = [3, 6, 1, 6, 2]  # unsorted, with equals; of six steps
SORTED = sorted(LENGTHS, reverse=True)
KINDS = [
    dict(zip(("num_layers", "bidirectional", "bias"), kind))
    for kind in ((1, False, True), (2, False, False), (1, True, True), (3, True, True))
]
by_kind = pytest.mark.parametrize("kind", KINDS, ids=lambda kind: "-".join(map(str, kind.values())))


def shapes(result):
    """What can be compared with nn.LSTM: every shape, and how a packed output is packed."""
    output, (h_n, c_n) = result
    found = [h_n.shape, c_n.shape]
    if not isinstance(output, PackedSequence):
        return [*found, output.shape]
    order = [None if t is None else t.tolist() for t in output[1:]]
    return [*found, output.data.shape, *order]


def forms(input, state, batch_first):
    """{how a layer may be called: the arguments}"""
    h0, c0 = state
    if batch_first:
        padded = input.transpose(0, 1)
    else:
        padded = input
    options = {"batch_first": batch_first}
    return {
        "batch": (padded, state),
        "without state": (padded,),
        "state None": (padded, None),
        "state in a list": (padded, [h0, c0]),
        "one row": (input[:, 0], (h0[:, 0], c0[:, 0])),
        "one row without state": (input[:, 0],),
        "packed": (pack_padded_sequence(padded, SORTED, **options), state),
        "packed without state": (pack_padded_sequence(padded, SORTED, **options),),
        "unsorted": (pack_padded_sequence(padded, LENGTHS, enforce_sorted=False, **options), state),
    }


@pytest.mark.parametrize("batch_first", [False, True])
def test_shapes_are_those_of_lstm(batch_first, target):
    for num_layers, bidirectional in itertools.product((1, 2), (False, True)):
        options = {"bidirectional": bidirectional, "batch_first": batch_first}
        module = make(target, 3, 4, num_layers, **options)
        lstm = nn.LSTM(3, 4, num_layers, device=target.device, dtype=target.dtype, **options)
        for name, arguments in forms(*draw_layer_call(module), batch_first).items():
            # cuDNN's own wants dense states.
            dense = [tuple(t.contiguous() for t in a) if type(a) is tuple else a for a in arguments]
            assert shapes(module(*arguments)) == shapes(lstm(*dense)), (name, options)


def test_forms_agree(target):
    """The same numbers in every form give the same numbers."""
    for batch_first in (False, True):
        module = make(target, 3, 4, 2, bidirectional=True, batch_first=batch_first)
        input, state = draw_layer_call(module)
        calls = forms(input, state, batch_first)
        output, (h_n, c_n) = module(*calls["batch"])
        listed, states = module(*calls["state in a list"])
        assert all_equal([listed, *states], [output, h_n, c_n])
        zeros = tuple(torch.zeros_like(part) for part in state)
        expected = module(calls["batch"][0], zeros)
        for name in ("without state", "state None"):
            actual = module(*calls[name])
            assert all_equal([actual[0], *actual[1]], [expected[0], *expected[1]])
        row, (h, c) = module(*calls["one row"])
        first = output[0] if batch_first else output[:, 0]
        # another batch is another product: as close as two cells are
        close = {"rtol": 10 * target.rtol, "atol": 10 * target.atol}
        torch.testing.assert_close(row, first, **close)
        torch.testing.assert_close(h, h_n[:, 0], **close)
        torch.testing.assert_close(c, c_n[:, 0], **close)


@by_kind
@pytest.mark.parametrize("batch_first", [False, True])
def test_batches_are_the_loop_over_the_cell(batch_first, kind, target):
    module = make(target, batch_first=batch_first, **kind)

    def run(input, h0, c0):
        padded = input.transpose(0, 1) if batch_first else input
        output, state = module(padded, (h0, c0))
        return (output if batch_first else output.transpose(0, 1)).unbind(0), *state

    check_layer(module, run, *draw_layer_call(module), target)


@by_kind
@pytest.mark.parametrize("lengths", [SORTED, LENGTHS], ids=["sorted", "unsorted"])
def test_packed_batches_are_the_loop_over_each_row(lengths, kind, target):
    """Values and gradients of rows that end at their own step; states in the batch's order."""
    module = make(target, **kind)
    in_order = lengths == SORTED

    def run(input, h0, c0):
        rows = [input[:length, row] for row, length in enumerate(lengths)]
        output, state = module(pack_sequence(rows, enforce_sorted=in_order), (h0, c0))
        padded, found = pad_packed_sequence(output)
        assert found.tolist() == lengths
        return [padded[:length, row] for row, length in enumerate(lengths)], *state

    check_layer(module, run, *draw_layer_call(module), target, lengths)


@pytest.mark.parametrize("lengths", [SORTED, LENGTHS], ids=["sorted", "unsorted"])
def test_padding_is_never_read(lengths, target):
    """NaN in the padding, and what was there before, is nowhere in outputs and gradients."""
    module = make(target, 3, 4, 2, bidirectional=True)
    input, state = draw_layer_call(module)
    for row, length in enumerate(lengths):
        input[length:, row] = NAN
    leaf = input.requires_grad_()
    packed = pack_padded_sequence(leaf, lengths, enforce_sorted=lengths == SORTED)
    output, (h_n, c_n) = module(packed, state)
    wanted = [leaf, *module.parameters()]
    gradients = torch.autograd.grad(output.data.sum() + h_n.sum() + c_n.sum(), wanted)
    for tensor in (output.data, h_n, c_n, *gradients):
        assert torch.isfinite(tensor).all()


def test_packed_without_steps(target):
    """Nobody packs an empty batch, but one may be made by hand."""
    module = make(target, 3, 4, 2)
    none = PackedSequence(torch.zeros(0, 3).to(module.weights_l0), torch.zeros(0).long())
    output, (h_n, c_n) = module(none)
    assert output.data.shape == (0, 4) and h_n.shape == c_n.shape == (2, 0, 4)


@pytest.mark.parametrize("steps, batch_size", [(0, 5), (4, 0)])
def test_empty(steps, batch_size, target):
    module = make(target, 3, 4, 2, bidirectional=True)
    input, state = draw_layer_call(module, steps, batch_size)
    output, (h_n, c_n) = module(input, state)
    assert output.shape == (steps, batch_size, 8)
    assert steps or all_equal((h_n, c_n), state)
    (output.sum() + h_n.sum()).backward()
    assert all(p.grad is not None and not p.grad.any() for p in module.parameters())


def test_one_layer_is_the_function_and_the_loop_of_a_cell(target):
    module = make(target)
    input, (h0, c0) = draw_layer_call(module)
    output, (h_n, c_n) = module(input, (h0, c0))
    cell = (module.weights_l0, module.bias_l0)
    assert all_equal((output, h_n[0], c_n[0]), lltm_sequence(input, *cell, h0[0], c0[0]))
    step = LLTM(3, 4, device=target.device, dtype=target.dtype)
    step.load_state_dict({"weights": cell[0], "bias": cell[1]})
    state = (h0[0], c0[0])
    for value, expected in zip(input, output):
        state = step(value, state)
        torch.testing.assert_close(state[0], expected, rtol=10 * target.rtol, atol=10 * target.atol)


def test_no_state_is_a_state_of_zeros_like_the_input(target):
    before = torch.get_default_dtype()
    for other in (torch.float32, torch.float64):
        module = make(target)
        input, _ = draw_layer_call(module)
        torch.set_default_dtype(other)
        try:
            assert {t.dtype for t in module(input)[1]} == {target.dtype}
        finally:
            torch.set_default_dtype(before)


def test_the_reference_layer_is_the_same(float64_target):
    """reference.LLTMSequence goes where an operator cannot, with the same parameters."""
    options = {"num_layers": 2, "bidirectional": True, "recompute": True}
    module = make(float64_target, 3, 4, **options)
    twin = reference.LLTMSequence(3, 4, dtype=torch.float64, **options)
    twin.load_state_dict(module.state_dict())
    input, state = draw_layer_call(module)
    actual = module(input, state)
    expected = twin(*exact([input]), tuple(exact(state)))
    for tensor, value in zip([actual[0], *actual[1]], [expected[0], *expected[1]]):
        torch.testing.assert_close(tensor.cpu(), value)


def test_recompute_changes_values_by_rounding_only(target):
    torch.manual_seed(1)
    module = make(target, 3, 4, 2, bidirectional=True, recompute=True)

    def run(input, h0, c0):
        output, state = module(input, (h0, c0))
        return output.unbind(1), *state

    check_layer(module, run, *draw_layer_call(module, steps=40, batch_size=2), target)


def test_positional_order_is_that_of_lstm():
    arguments = (3, 4, 2, False, True, 0.25, True, 0, "cpu", torch.float64)
    module, lstm = LLTMSequence(*arguments), nn.LSTM(*arguments)
    for name in "input_size hidden_size num_layers bias batch_first dropout bidirectional".split():
        assert getattr(module, name) == getattr(lstm, name), name
    assert module.weights_l0.dtype == lstm.weight_ih_l0.dtype == torch.float64


def test_what_differs_from_lstm():
    """docs/layer.md lists it."""
    module, lstm = LLTMSequence(3, 4), nn.LSTM(3, 4)
    for name in "proj_size mode".split():
        assert hasattr(lstm, name) and not hasattr(module, name)
    state = (torch.randn(1, 5, 4), torch.randn(1, 5, 4))
    input = torch.randn(2, 5, 3)
    lstm(input, hx=state)
    with pytest.raises(TypeError, match="hx"):
        module(input, hx=state)
    # nn.LSTM, from some torch on, refuses these
    output, last = module(input[:0], state)
    assert output.shape == (0, 5, 4) and all_equal(last, state)
    module.flatten_parameters()

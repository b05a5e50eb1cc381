"""A sequence is the loop over the reference cell: values and every gradient, at hostile sizes."""

import math
import random

import pytest
import torch
from helpers import all_equal, assert_fresh, exact, leaves
from sequence_helpers import (
    LOSSES,
    assert_same_sequences,
    check_sequence,
    draw_masks,
    draw_sequence,
    evaluate,
    pack,
    ragged,
)

from lltm_decoupled import lltm_sequence, reference

# fmt: off
# steps, batch_size, input_features, state_size, bias. 32 steps are a chunk of recomputation.
SIZES = [
    (1,  5, 3,   4,   "vector"),
    (2,  3, 5,   1,   "row"),
    (3,  7, 2,   33,  None),
    (7,  2, 9,   100, "vector"),
    (7,  5, 3,   130, "row"),
    (3,  4, 257, 257, "vector"),
    (64, 3, 2,   5,   "vector"),
    (33, 1, 1,   1,   None),
    (32, 6, 4,   33,  "row"),
    (2,  70, 1,  2,   "vector"),
]
# fmt: on


def options_of(inputs, batch_sizes=None, reverse=False, zoneout=False):
    """The keyword arguments of one way to run a sequence, and its inputs."""
    options = {"reverse": reverse}
    if batch_sizes is not None:
        options["batch_sizes"] = batch_sizes
        inputs = pack(inputs, batch_sizes)
    if zoneout:
        options.update(draw_masks(inputs))
    return inputs, options


# Every kind of run at every size: plain, packed, backwards, with zoneout, recomputed.
WAYS = [
    {},
    {"reverse": True},
    {"packed": True},
    {"packed": True, "reverse": True},
    {"zoneout": True, "recompute": True},
    {"packed": True, "reverse": True, "zoneout": True},
    {"packed": True, "recompute": True},
    {"reverse": True, "recompute": True},
    {"packed": True, "reverse": True, "zoneout": True, "recompute": True},
    {"stateless": True},
    {"stateless": True, "recompute": True},
    {"stateless": True, "reverse": True, "zoneout": True},
]


def check_way(target, inputs, loss="all", packed=False, stateless=False, recompute=False, **way):
    if stateless:
        inputs = [*inputs[:3], None, None]
    batch_sizes = ragged(*inputs[0].shape[:2]) if packed else None
    inputs, options = options_of(inputs, batch_sizes, **way)
    check_sequence(target, inputs, loss, recompute, **options)


@pytest.mark.parametrize("sizes", SIZES, ids=lambda sizes: "-".join(map(str, sizes)))
def test_values_and_gradients(sizes, target):
    inputs = draw_sequence(target, *sizes)
    for way in WAYS:
        check_way(target, inputs, **way)


@pytest.mark.parametrize("loss", LOSSES)
def test_losses(loss, target):
    """On one output or several: what is not used has no gradient to add."""
    inputs = draw_sequence(target)
    for way in WAYS:
        check_way(target, inputs, loss, **way)


def test_random_runs(float64_target):
    """Sizes, packings and options that nobody thought of."""
    random.seed(5)
    for _ in range(60):
        steps, batch_size, *features = (random.randint(1, limit) for limit in (70, 6, 6, 9))
        bias = random.choice(("vector", "row", None))
        inputs = draw_sequence(float64_target, steps, batch_size, *features, bias=bias)
        lengths = sorted([steps] + random.choices(range(1, steps + 1), k=batch_size - 1))
        batch_sizes = torch.tensor([sum(n > t for n in lengths) for t in range(steps)])
        inputs, options = options_of(
            inputs,
            batch_sizes if random.random() < 0.5 else None,
            random.random() < 0.5,
            random.random() < 0.5,
        )
        recompute = random.random() < 0.5
        check_sequence(float64_target, inputs, random.choice(list(LOSSES)), recompute, **options)


@pytest.mark.parametrize("recompute", [False, True])
@pytest.mark.parametrize("steps, batch_size", [(0, 5), (4, 0), (0, 0)])
def test_empty(steps, batch_size, recompute, target):
    """No steps: the states are the first ones. No rows: weights have a gradient, of zeros."""
    inputs = draw_sequence(target, steps, batch_size)
    for reverse in (False, True):
        check_sequence(target, inputs, recompute=recompute, reverse=reverse, **draw_masks(inputs))
    output, h_n, c_n = lltm_sequence(*inputs, recompute=recompute)
    assert output.shape == (steps, batch_size, 4)
    if steps == 0:
        assert all_equal((h_n, c_n), inputs[3:])
        if batch_size > 0:  # without a number there is no memory to share
            assert_fresh((h_n, c_n), inputs)
    given = leaves(inputs)
    for output in lltm_sequence(*given, recompute=recompute):
        for create_graph in (False, True):
            more = {"retain_graph": True, "create_graph": create_graph}
            gradients = torch.autograd.grad(output.sum(), given, **more)
            assert not any(gradient.any() for gradient in gradients[:3])


@pytest.mark.parametrize("recompute", [False, True])
def test_steps_without_rows_take_no_time(recompute, target):
    """However many they are: more than an int32 counts."""
    inputs = draw_sequence(target, 1, 0)
    inputs[0] = inputs[0].expand(2**31, 0, 3)
    given = leaves(inputs)
    outputs = lltm_sequence(*given, recompute=recompute)
    assert [len(output) for output in outputs] == [2**31, 0, 0]
    loss = sum(output.sum() for output in outputs)
    for create_graph in (True, False):
        gradients = torch.autograd.grad(loss, given, create_graph=create_graph)
        assert not any(gradient.any() for gradient in gradients)


def test_empty_packed(target):
    for batch_size in (5, 0):
        inputs = draw_sequence(target, 0, batch_size)
        inputs[0] = inputs[0].reshape(0, 3)
        none = torch.zeros(0, dtype=torch.int64)
        for recompute in (False, True):
            check_sequence(target, inputs, recompute=recompute, batch_sizes=none)


def test_no_features(target):
    """Without an input the sequence is the recurrence alone."""
    check_sequence(target, draw_sequence(target, input_features=0))


@pytest.mark.parametrize("value", [math.nan, math.inf], ids=str)
@pytest.mark.parametrize("position", [0, 1, 3, 4], ids=["input", "weights", "h0", "c0"])
def test_special_values_stay_where_the_reference_puts_them(position, value, target):
    for way in WAYS:
        if way.get("zoneout"):
            continue  # below
        if way.get("stateless") and position == 1:
            continue  # zero times infinity is NaN, where it is multiplied
        inputs = draw_sequence(target)
        inputs[position].view(-1)[inputs[position].numel() // 2] = value
        check_way(target, inputs, **way)


def test_special_values_with_zoneout(target):
    """What a unit did not take is not in its gradient; where() of the reference adds 0 * NaN."""
    for position in (0, 1, 3, 4):
        for packed in (False, True):
            inputs = draw_sequence(target)
            inputs[position].view(-1)[inputs[position].numel() // 2] = math.nan
            inputs, options = options_of(inputs, ragged(4, 5) if packed else None, zoneout=True)
            actual = evaluate(lltm_sequence, inputs, **options)
            options.update({n: m.cpu() for n, m in options.items() if n.startswith("zoneout")})
            expected = evaluate(reference.lltm_sequence, exact(inputs), **options)
            for name in actual:
                if name.startswith("d_"):
                    unknown = expected[name].isnan()
                    actual[name][unknown.to(target.device)] = math.nan
            assert_same_sequences(actual, expected, target)


def test_zoneout_of_everything_keeps_the_first_state(target):
    inputs = draw_sequence(target)
    masks = {name: torch.ones_like(mask) for name, mask in draw_masks(inputs).items()}
    output, h_n, c_n = lltm_sequence(*inputs, **masks)
    assert all_equal((h_n, c_n), inputs[3:])
    assert torch.equal(output, inputs[3].expand_as(output))
    inputs[0][:] = math.nan  # what is not taken must not reach the states
    assert all_equal(lltm_sequence(*inputs, **masks), (output, h_n, c_n))


def test_one_mask_alone(target):
    inputs = draw_sequence(target)
    for name, mask in draw_masks(inputs).items():
        for way in ({}, {"recompute": True}, {"reverse": True}):
            check_sequence(target, inputs, **way, **{name: mask})


def test_outputs_are_new(target):
    for way in ({}, {"reverse": True}, {"recompute": True}):
        for inputs in (draw_sequence(target), draw_sequence(target, 1)):
            assert_fresh(lltm_sequence(*inputs, **way), inputs)


def test_same_bits_every_time(target):
    inputs, options = options_of(draw_sequence(target, 40, 7, 5, 33), ragged(40, 7), zoneout=True)
    first, second = (evaluate(lltm_sequence, inputs, **options) for _ in range(2))
    assert all(torch.equal(first[name], second[name]) for name in first)


def test_the_last_step_is_the_last_state(target):
    for reverse in (False, True):
        output, h_n, _ = lltm_sequence(*draw_sequence(target), reverse=reverse)
        assert torch.equal(output[0 if reverse else -1], h_n)


def test_reversed_is_the_flipped_sequence(float64_target):
    inputs = exact(draw_sequence(float64_target))
    flipped = reference.lltm_sequence(inputs[0].flip(0), *inputs[1:])
    output, h_n, c_n = reference.lltm_sequence(*inputs, reverse=True)
    assert all_equal((output.flip(0), h_n, c_n), flipped)

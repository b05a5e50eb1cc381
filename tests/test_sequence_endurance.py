"""Sequences of every kind at random on two streams, for as long as one likes; the same one as often
as one likes; and long ones.

LLTM_ENDURANCE_SECONDS=900 LLTM_ENDURANCE_REPEATS=1000 LLTM_ENDURANCE_SEED=1 \
    python -m pytest tests/test_sequence_endurance.py -s
"""

import gc
import os
import random
import time

import pytest
import torch
from conftest import TARGETS, require_device
from helpers import all_equal, exact
from sequence_helpers import (
    LOSSES,
    assert_errs_at_most_twice,
    draw_masks,
    draw_sequence,
    evaluate,
    pack,
    ragged,
)

from lltm_decoupled import lltm_sequence, reference

SECONDS = float(os.environ.get("LLTM_ENDURANCE_SECONDS", "2"))
SEED = int(os.environ.get("LLTM_ENDURANCE_SEED", "8"))
REPEATS = int(os.environ.get("LLTM_ENDURANCE_REPEATS", "20"))
WARM_UP = 100  # rounds, after which memory must not grow
# steps, batch_size, input_features, state_size: one block, the grid and step by step; at last,
# large products
SIZES = (
    (50, 16, 32, 64),
    (20, 150, 8, 128),
    (60, 16, 16, 200),
    (40, 33, 16, 256),
    (40, 16, 8, 512),
)
SIZES += ((9, 7, 3, 101), (12, 64, 16, 768), (8, 64, 16, 1024), (6, 300, 8, 512))
SIZES += ((20, 70, 8, 380), (12, 90, 8, 640), (20, 600, 8, 200), (44, 96, 512, 512))
KINDS = ("plain", "packed", "reverse", "recompute", "zoneout")


def draw_job(target, sizes, kind):
    """A function without arguments that computes a sequence and all its gradients."""
    inputs = draw_sequence(target, *sizes)
    inputs[1] *= 0.5  # with larger weights some draws are chaotic: a difference grows without end
    options = {kind: True} if kind in ("reverse", "recompute") else {}
    if kind == "packed":
        options = {"batch_sizes": ragged(*sizes[:2])}
        inputs = pack(inputs, options["batch_sizes"])
    elif kind == "zoneout":
        options = draw_masks(inputs)
    check_norms(target, inputs, options)
    return lambda: evaluate(lltm_sequence, inputs, **options).values()


def check_norms(target, inputs, options):
    """Single values of so many steps, or in so many draws, may differ."""
    known = {name: value for name, value in options.items() if name != "recompute"}
    masks = {name: mask.cpu() for name, mask in known.items() if name.startswith("zoneout")}
    expected = evaluate(reference.lltm_sequence, exact(inputs), **dict(known, **masks))
    # A half type rounds what comes out; in the others errors of many steps add up.
    limit = (3 if torch.finfo(target.dtype).bits == 16 else 16) * torch.finfo(target.dtype).eps
    for name, actual in evaluate(lltm_sequence, inputs, **options).items():
        error = (actual.cpu().double() - expected[name]).norm() / expected[name].norm()
        assert error < limit, f"{name} of {options.keys()}"


@pytest.fixture(params=[t for t in TARGETS if t.device != "cpu"], ids=str)
def gpu_target(request):
    require_device(request.param.device)
    return request.param


@pytest.fixture(params=[False, True], ids=["full", "TF32"])
def tf32(request, gpu_target):
    if request.param and gpu_target.dtype != torch.float32:
        pytest.skip("TF32 is a way to multiply float32")
    torch.backends.cuda.matmul.allow_tf32 = request.param
    return request.param


@pytest.mark.parametrize("device", sorted({target.device for target in TARGETS} - {"cpu"}))
def test_mixed_sequences_on_two_streams(device):
    require_device(device)
    dice = random.Random(SEED)
    targets = [target for target in TARGETS if target.device == device]
    some = [(t, sizes, dice.choice(KINDS)) for t in targets for sizes in SIZES]
    with torch.cuda.device(device):
        jobs = [draw_job(*one) for one in some]
        expected = [[t.clone() for t in job()] for job in jobs]
        streams = [torch.cuda.Stream() for _ in range(2)]
        torch.cuda.synchronize()
        rounds, until = 0, time.monotonic() + SECONDS
        while rounds <= WARM_UP or time.monotonic() < until:
            picked = [dice.randrange(len(jobs)) for _ in streams]
            results = []
            for stream, index in zip(streams, picked):
                with torch.cuda.stream(stream):
                    results.append(jobs[index]())
            torch.cuda.synchronize()
            for index, result in zip(picked, results):
                assert all_equal(result, expected[index]), f"round {rounds}: {some[index]}"
            results = result = None
            rounds += 1
            if rounds == WARM_UP:
                gc.collect()
                allocated, reserved = torch.cuda.memory_allocated(), torch.cuda.memory_reserved()
        gc.collect()
        assert torch.cuda.memory_allocated() <= allocated
        assert torch.cuda.memory_reserved() <= 2 * reserved  # what was freed may lie in pieces
    print(f"{device}: {rounds} rounds of two, {len(jobs)} kinds of sequences")


@pytest.mark.parametrize(
    "sizes",
    [(32, 16, 8, 96), (64, 64, 8, 256), (20, 600, 8, 256), (64, 16, 8, 512), (40, 64, 8, 768)]
    + [(40, 64, 8, 1024)],
    ids=str,
)
def test_the_same_bits_every_time(sizes, gpu_target, tf32):
    inputs = draw_sequence(gpu_target, *sizes)
    expected = list(evaluate(lltm_sequence, inputs).values())
    for repeat in range(REPEATS):
        assert all_equal(list(evaluate(lltm_sequence, inputs).values()), expected), repeat


def test_long_sequences_err_as_a_plain_loop_does(target):
    if target.device == "cpu":
        return check_long_sequences(target, 128)
    check_long_sequences(target, 256, recompute=True)  # in many launches
    for tf32 in (False, True) if target.dtype == torch.float32 else (False,):
        torch.backends.cuda.matmul.allow_tf32 = tf32
        for state_size in (128, 256, 512):
            check_long_sequences(target, state_size, tf32)


def check_long_sequences(target, state_size, tf32=False, recompute=False):
    def draw_inputs():
        inputs = draw_sequence(target, 2048, 16, 16, state_size)
        # With weights of twice that the loop is chaotic, and a difference grows without end.
        inputs[1] *= 0.15
        return inputs

    def small_loss(outputs):
        return LOSSES["all"](outputs) / 64  # a larger one's gradients are beyond float16

    assert_errs_at_most_twice(draw_inputs, small_loss, tf32=tf32, recompute=recompute)

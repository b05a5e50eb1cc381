"""Other Python threads run on while an operator computes, and many may call it at once."""

import contextlib
import threading
import time

import pytest
import torch
from helpers import assert_same_results, draw, draw_grads, evaluate, exact

import lltm_decoupled
from lltm_decoupled import lltm_cell, reference


def raw(*inputs):
    return lltm_decoupled.forward(*inputs)


@pytest.mark.parametrize("function", (lltm_decoupled.lltm_cell, raw), ids=("cell", "raw"))
def test_the_interpreter_is_released(function):
    """Held for the whole call, the lock would leave the other thread not one turn."""
    H = 1024
    inputs = [torch.randn(*shape) for shape in ((2048, H), (3 * H, 2 * H), (3 * H,))]
    inputs += [torch.randn(2048, H), torch.randn(2048, H)]
    turns, done = [], threading.Event()

    def count():
        while not done.is_set():
            turns.append(time.perf_counter())
            time.sleep(0.001)

    other = threading.Thread(target=count)
    other.start()
    try:
        start = time.perf_counter()
        function(*inputs)
        end = time.perf_counter()
    finally:
        done.set()
        other.join()
    inside = [turn for turn in turns if start + 0.1 * (end - start) < turn < end]
    assert len(inside) >= 2, f"{len(inside)} turns of the other thread in {end - start:.3f} s"


THREADS, ROUNDS = 8, 10


def test_eight_threads_at_once(target):
    """Each with sizes and a CUDA stream of its own, on weights that all share; legal and not."""
    wide = draw(target, batch_size=4, input_features=5, state_size=64)
    jobs = []
    for number in range(THREADS):
        inputs = draw(target, batch_size=1 + 40 * number, input_features=5, state_size=64)
        inputs[1:3] = wide[1:3]
        grads = draw_grads(inputs)
        expected = evaluate(reference.lltm_cell, exact(inputs), exact(grads))
        jobs.append((inputs, grads, expected))
    on_cuda = target.device != "cpu"
    if on_cuda:
        torch.cuda.synchronize(target.device)
    start, finished, failures = threading.Barrier(THREADS), [], []

    def work(inputs, grads, expected):
        try:
            stream = torch.cuda.Stream(target.device) if on_cuda else None
            with torch.cuda.stream(stream) if on_cuda else contextlib.nullcontext():
                start.wait(timeout=60)
                for _ in range(ROUNDS):
                    actual = evaluate(lltm_cell, inputs, grads)
                    with pytest.raises(RuntimeError, match="old_h"):
                        lltm_cell(*inputs[:3], inputs[3][:, 1:], inputs[4])
                    assert_same_results(actual, expected, target, len(inputs[0]))
            finished.append(len(inputs[0]))
        except BaseException as error:  # of a thread: the main one raises it below
            failures.append(error)

    threads = [threading.Thread(target=work, args=job) for job in jobs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]
    assert sorted(finished) == [1 + 40 * number for number in range(THREADS)]

"""Other Python threads run on while an operator computes."""

import threading
import time

import pytest
import torch

import lltm_decoupled


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

"""Errors of CUDA's runtime: a function of the core gives one as its status, and leaves none."""

import ctypes

import pytest
import torch
from conftest import require_device
from core_abi import core, exported, multiply_workspace, poisoned
from test_core_sequence_spread import draw_spread, spread


def draw_product():
    """(function, arguments) of a product by tensor cores."""
    if multiply_workspace(8, 8, 8) == 0:
        pytest.skip(f"{torch.cuda.get_device_name()} has no such kernel")
    a, b, c = (poisoned(torch.float32, 8, 8) for _ in range(3))
    workspace = poisoned(torch.float32, multiply_workspace(8, 8, 8))
    return "multiply", (8, 8, 8, a, 8, 1, b, 8, 1, c, 8, 0, workspace)


def draw_sequence():
    """(function, arguments) of a sequence in one launch that spreads over the GPU."""
    sizes = (8, 16, 512)
    options, _ = spread(torch.float32, 0, sizes)
    arguments, _, gates, cell = draw_spread(torch.float32, sizes)
    output, last = poisoned(torch.float32, *sizes), poisoned(torch.float32, *sizes[1:])
    tail = (gates, None, None, cell, output, None, last, None, options)
    return "sequence_forward", (*arguments, None, *tail)


@pytest.mark.parametrize("draw", (draw_product, draw_sequence))
def test_an_error_is_given_once(draw):
    require_device("cuda:0")
    name, arguments = draw()
    function, last_error = core(name, torch.float32), exported("cudaPeekAtLastError")
    assert last_error() == 0
    # The default stream takes no work while one that waits for it is captured.
    stream, graph = ctypes.c_void_p(), ctypes.c_void_p()
    assert exported("cudaStreamCreate")(ctypes.byref(stream)) == 0
    assert exported("cudaStreamBeginCapture")(stream, 0) == 0
    status, left = function(*arguments), last_error()
    exported("cudaStreamEndCapture")(stream, ctypes.byref(graph))
    exported("cudaGetLastError")()
    assert exported("cudaStreamDestroy")(stream) == 0
    assert status > 0 and left == 0
    assert function(*arguments) == 0
    torch.cuda.synchronize()

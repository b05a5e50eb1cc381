"""The kernels whose blocks exchange values, on a CPU that runs all their blocks in turns.

As test_emulated_kernels.py, for the smallest ones of the grid. What a GPU may reorder in its memory
does not show here.
"""

import pytest
import test_core_sequence_spread as spread
import torch
from core_abi import core, poisoned
from sequence_helpers import ragged

pytestmark = pytest.mark.usefixtures("gpu")
of_floats = pytest.mark.parametrize("dtype", (torch.float32, torch.float16), ids=str)

# (multiprocessors, steps, batch_size, state_size, packed): blocks of 16 units, and of 32; padded
# units and rows; groups of rows that take turns; several blocks of a multiprocessor
SIZES = ((132, 5, 3, 130, True), (16, 4, 12, 256, False), (8, 4, 33, 200, True))


@of_floats
@pytest.mark.parametrize("processors, steps, batch_size, state_size, packed", SIZES)
def test_values(gpu, dtype, processors, steps, batch_size, state_size, packed):
    gpu.start(processors)
    batch_sizes = ragged(steps, batch_size).tolist() if packed else None
    spread.check_spread(dtype, (steps, batch_size, state_size), batch_size % 2, batch_sizes)


@pytest.mark.parametrize("processors, steps, batch_size, state_size, packed", SIZES)
def test_values_in_tf32(gpu, processors, steps, batch_size, state_size, packed):
    gpu.start(processors)
    spread.test_spread_at_the_accuracy_of_tf32((steps, batch_size, state_size), packed)


def test_the_exchange_begins_anew(gpu):
    gpu.start(16)
    spread.test_spread_at_the_accuracy_of_tf32((140, 9, 132), False)


@pytest.mark.parametrize(
    "dtype, tf32", ((torch.float32, 0), (torch.float32, 1), (torch.float16, 0))
)
def test_nan_stays_in_its_row(gpu, dtype, tf32):
    gpu.start(132)
    spread.test_a_spread_step_with_nan_stays_in_its_row(dtype, 256, tf32)


@pytest.mark.parametrize(
    "dtype, tf32", ((torch.float32, 0), (torch.float32, 1), (torch.float16, 0))
)
def test_a_block_that_waits_in_vain_says_so(gpu, dtype, tf32):
    gpu.start(132)
    spread.test_a_block_that_waits_in_vain_says_so(dtype, (8, 20, 256), tf32)


def test_another_threads_launch_takes_no_memory_from_this_one(gpu):
    """Its kernel is the same, for fewer rows, and it comes between the plan and the launch."""
    gpu.start(8)
    sizes = (4, 33, 200)
    arguments, _, gates, cell = spread.draw_spread(torch.float16, sizes)
    options, _ = spread.spread(torch.float16, 0, sizes)
    spread.spread(torch.float16, 0, (4, 17, 200))
    output = poisoned(torch.float16, *sizes)
    tail = (None, None, cell, output, None, None, None, options)
    assert core("sequence_forward", torch.float16)(*arguments, None, gates, *tail) == 0
    assert output.isfinite().all()


@of_floats
def test_statuses(gpu, dtype):
    gpu.start(132)
    spread.test_statuses_of_a_spread_launch(dtype)

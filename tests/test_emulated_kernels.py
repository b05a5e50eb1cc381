"""The kernels that need no exchange between blocks, on a CPU.

Other files' tests of a GPU, with an emulated one in its place: emulated_gpu.py. So a fault in them
is seen where no GPU is.
"""

import re

import core_abi
import emulated_gpu as emulation
import pytest
import test_core_cuda
import test_core_gradients
import test_core_sequence
import test_core_sequence_product
import test_core_split_product
import test_core_step
import torch
from core_abi import CTYPES

test_cell = test_core_cuda.test_forward_and_backward
test_cell_statuses = test_core_cuda.test_statuses
test_fused_cell_statuses = test_core_cuda.test_fused_statuses
test_products_of_infinity_and_nan = test_core_cuda.test_gradient_products_of_infinity_and_nan
test_products_of_nothing = test_core_cuda.test_gradient_products_of_nothing
test_products_statuses = test_core_cuda.test_gradient_products_statuses
test_step = test_core_step.test_forward_and_backward
test_step_without_flow = test_core_step.test_nothing_flows_through_an_unused_h
test_step_statuses = test_core_step.test_statuses
test_gradients_of_infinity_and_nan = test_core_gradients.test_infinity_and_nan
test_gradients_of_nothing = test_core_gradients.test_empty_sums_are_zero
test_gradients_in_tf32 = test_core_gradients.test_tf32
test_gradients_statuses = test_core_gradients.test_statuses
test_plan_statuses = test_core_sequence.test_plan_statuses
test_sequence_product_of_infinity_and_nan = test_core_sequence_product.test_infinity_and_nan
test_sequence_product_in_tf32 = test_core_sequence_product.test_tf32
test_sequence_product_statuses = test_core_sequence_product.test_statuses
test_split_product_of_any_magnitude = test_core_split_product.test_any_magnitude_of_rows_and_columns
test_split_product_within_a_row = test_core_split_product.test_magnitudes_within_a_row
test_split_product_of_infinity_and_nan = test_core_split_product.test_infinity_and_nan
test_split_product_multiplies = test_core_split_product.test_tensor_cores_multiply
test_split_product_in_the_end = (
    test_core_split_product.test_what_is_normal_in_the_end_keeps_its_bits
)
test_split_product_statuses = test_core_split_product.test_statuses


pytestmark = pytest.mark.usefixtures("gpu")


@pytest.fixture(params=CTYPES, ids=str)
def dtype(request):
    return request.param


@pytest.fixture
def place(gpu, dtype):
    return gpu.memory, dtype


@pytest.mark.parametrize("has_bias", (True, False))
@pytest.mark.parametrize("sizes", ((5, 36, 12), (5, 33, 7), (1, 4, 0)), ids=str)
def test_fused_cell(dtype, sizes, has_bias):
    test_core_cuda.test_fused_forward(dtype, sizes, has_bias)


@pytest.mark.parametrize("sizes", ((17, 12, 8), (5, 36, 12), (5, 33, 7), (1, 4, 0)), ids=str)
def test_products(dtype, sizes):
    test_core_cuda.test_gradient_products(dtype, sizes)


def test_products_of_many_tiles(dtype):
    """So many that no threads share a sum over the batch."""
    sizes = (3, 4, 8444)
    operands = test_core_cuda.draw_products(dtype, *sizes)
    status, gradients = test_core_cuda.launch_gradients(dtype, sizes, *operands)
    assert status == 0
    for name, want in test_core_cuda.exact_gradients(4, *operands).items():
        tolerance = core_abi.TOLERANCES[dtype]
        torch.testing.assert_close(core_abi.exact(gradients[name]), want, **tolerance)


# A tile's part; several, and tiles that are not full; terms in many parts; none
@pytest.mark.parametrize("layout", test_core_split_product.LAYOUTS, ids=str)
@pytest.mark.parametrize("sizes", ((4, 4, 4), (132, 72, 200), (8, 840, 12), (8, 0, 12)), ids=str)
def test_split_product(gpu, sizes, layout):
    gpu.start(processors=7)
    test_core_split_product.test_values(sizes, layout)


def test_split_product_is_added_once(gpu):
    gpu.start(processors=64)
    test_core_split_product.test_a_sum_of_parts_is_added_once()


# By tensor cores in half types, where the GPU has them.
on_hopper_or_not = pytest.mark.parametrize("hopper", (True, False), ids=("Hopper", "older"))


@on_hopper_or_not
@pytest.mark.parametrize("transposed", (True, False), ids=("transposed", "straight"))
@pytest.mark.parametrize("sizes", test_core_sequence_product.SIZES, ids=str)
def test_sequence_product(gpu, dtype, sizes, transposed, hopper):
    gpu.start(1, hopper)
    test_core_sequence_product.test_values(dtype, sizes, transposed)


def test_tensor_cores_take_tf32_where_they_are(gpu):
    operands = test_core_sequence_product.draw(torch.float32, 9, 20, 12, True)
    products = []
    for hopper in (True, False):
        gpu.start(1, hopper)
        products += [
            test_core_sequence_product.multiply(torch.float32, *operands, True, tf32)
            for tf32 in (1, 0)
        ]
    assert [torch.equal(product, products[-1]) for product in products] == [False, True, True, True]


# T, B, H, I: a part; two of them, in two tiles each way, with three stages in the last of doubles
@pytest.mark.parametrize("reverse", (0, 1))
@pytest.mark.parametrize("sizes", ((1, 1, 1, 1), (3, 2, 5, 7), (13, 4, 24, 112), (4, 3, 8, 0)))
@on_hopper_or_not
def test_gradients(gpu, dtype, sizes, reverse, hopper):
    gpu.start(1, hopper)
    test_core_gradients.test_values(dtype, sizes, reverse)


# A thread's registers hold no half of the weights as doubles.
of_sequences = pytest.mark.parametrize(
    "dtype", [dtype for dtype in CTYPES if dtype != torch.float64], ids=str
)

# Each width of a kernel: full, or padded.
SEQUENCES = ((1, 1, 1), (14, 4, 32), (5, 3, 33), (12, 2, 96), (3, 3, 101))


@of_sequences
@pytest.mark.parametrize("kind", ("one row", "two rows", "packed"))
@pytest.mark.parametrize("reverse", (0, 1))
@pytest.mark.parametrize("sizes", SEQUENCES, ids=str)
def test_sequence(gpu, dtype, sizes, reverse, kind):
    gpu.start(1 if kind == "two rows" else sizes[1], hopper=False)
    test_core_sequence.check_passes(dtype, sizes, reverse, kind == "packed")


@pytest.mark.parametrize("dtype", (torch.float16, torch.bfloat16), ids=str)
@pytest.mark.parametrize("packed", (0, 1))
@pytest.mark.parametrize("reverse", (0, 1))
@pytest.mark.parametrize("sizes", SEQUENCES, ids=str)
def test_sequence_by_tensor_cores(dtype, sizes, reverse, packed):
    test_core_sequence.check_passes(dtype, sizes, reverse, packed)


@of_sequences
@pytest.mark.parametrize(
    "without",
    (("bias",), ("h0",), ("d_h",), ("grad_output",), ("bias", "h0", "d_h", "grad_output")),
    ids=str,
)
@pytest.mark.parametrize("packed", (0, 1))
def test_sequence_without(dtype, packed, without):
    test_core_sequence.check_passes(dtype, (4, 3, 20), 0, packed, without)


@of_sequences
def test_sequence_statuses(dtype):
    test_core_sequence.test_statuses(dtype)


def test_plan(monkeypatch):
    monkeypatch.setattr(test_core_sequence, "spreads", lambda: False)
    test_core_sequence.test_plan()


def test_numbers(monkeypatch):
    monkeypatch.setattr(torch.cuda, "_sleep", lambda cycles: None)
    test_core_sequence.test_numbers_from_host_memory_that_is_reused()


# In the order of tests/emulation/faults.cpp, what a launch returns.
FAULTS = {
    "none": 0,
    "no barrier": 0,
    "a barrier of some": 719,
    "a shuffle of some": 719,
    "different shuffles": 719,
    "an address beyond": 719,
    "an index beyond": 719,
    "misaligned": 716,
}


@pytest.mark.parametrize("fault", FAULTS)
def test_the_emulation_sees_faults(gpu, fault):
    """And a kernel without one runs afterwards."""
    values = torch.arange(64, dtype=torch.float32)
    for name in (fault, "none"):
        gpu.start(processors=1)
        array = gpu.put(values)
        status = gpu.function("emulated_fault")(list(FAULTS).index(name), core_abi.argument(array))
        assert status == FAULTS[name]
        if status == 0:
            assert torch.equal(array, values.roll(-1)) == (name == "none")


@pytest.mark.parametrize("template", emulation.ASSEMBLY)
def test_changed_assembly_is_named(template, monkeypatch, tmp_path):
    """As if a source had another instruction than the one that is known, or no longer had it."""
    code = emulation.ASSEMBLY[template]
    monkeypatch.setitem(emulation.ASSEMBLY, "new " + template, code)
    with pytest.raises(LookupError, match="no source has.*" + re.escape(repr("new " + template))):
        emulation.copy_sources(tmp_path)
    monkeypatch.delitem(emulation.ASSEMBLY, template)
    named = r"\.cuh:\d+: emulated_assembly.py knows no " + re.escape(repr(template))
    with pytest.raises(LookupError, match=named):
        emulation.copy_sources(tmp_path)


@pytest.mark.parametrize("line", ("kernel<<<1, 32>>>(a);", "extern __shared__ T x[]"))
def test_what_cannot_be_read_is_named(line):
    with pytest.raises(LookupError, match="some.cu: emulated_gpu.py cannot read the line"):
        emulation.translated("some.cu", line, set())

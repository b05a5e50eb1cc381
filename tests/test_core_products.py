"""The core's host products against float64, for every instruction set, over hostile sizes."""

import ctypes
import itertools

import numpy as np
import pytest
from core_tables import VARIANTS, host_function, structure

TYPES = {"float32": (0, np.float32), "float64": (1, np.float64)}  # place in the table
BATCHES = (0, 1, 2, 3, 7, 8, 15, 16)
WIDTHS = (0, 1, 31, 33, 100, 257)
SIZES = [
    *itertools.product(BATCHES, WIDTHS, WIDTHS),
    # more rows of the batch than are worked on at a time, panels of several widths
    *((130, 33, 37), (65, 1, 17), (64, 64, 64), (1, 1100, 2), (5, 2100, 1)),
]
SIZE_NAMES = "batch_size state_size input_features"
GateProducts = structure("GateProducts", SIZE_NAMES, "input weights old_h gates")
GradientProducts = structure(
    "GradientProducts",
    SIZE_NAMES,
    "d_gates input weights old_h d_input d_weights d_bias d_old_h",
)
OUTPUTS = ("d_input", "d_weights", "d_bias", "d_old_h")
GUARD = 12345.0  # what is behind an array has to stay


class Arrays:
    """The arguments of both functions by name, drawn or, for outputs, filled with NaN."""

    def __init__(self, dtype, batch_size, state_size, input_features, offset=0):
        B, H, I = batch_size, state_size, input_features  # noqa: E741
        pick = np.random.default_rng(B + 100 * H + 100000 * I)
        self.sizes = (B, H, I)
        self.dtype, self.offset, self.blocks = dtype, offset, []
        shapes = {"input": (B, I), "weights": (3 * H, H + I), "old_h": (B, H)}
        for name, shape in {**shapes, "d_gates": (B, 3 * H)}.items():
            setattr(self, name, self.array(pick.uniform(-1, 1, shape)))
        outputs = {"d_" + name: shape for name, shape in shapes.items()}
        for name, shape in {**outputs, "gates": (B, 3 * H), "d_bias": (3 * H,)}.items():
            setattr(self, name, self.array(np.full(shape, np.nan)))

    def array(self, values):
        """In memory of its own, with a guard before and behind it."""
        block = np.full(self.offset + values.size + 16, GUARD, self.dtype)
        self.blocks.append((block, values.size))
        view = block[self.offset : self.offset + values.size].reshape(values.shape)
        view[...] = values
        return view

    def call(self, function, arguments, without=()):
        names = [name for name, _ in arguments._fields_[3:] if name not in without]
        pointers = {name: getattr(self, name).ctypes.data for name in names}
        function(ctypes.byref(arguments(*self.sizes, **pointers)))
        for block, size in self.blocks:
            assert (block[: self.offset] == GUARD).all()
            assert (block[self.offset + size :] == GUARD).all()

    def expected(self):
        """Name to (value, the sum of its terms' magnitudes), in float64."""
        X = np.concatenate([self.old_h, self.input], 1).astype(np.float64)
        W, d = self.weights.astype(np.float64), self.d_gates.astype(np.float64)
        H = self.sizes[1]

        def results(X, W, d):
            d_X = d @ W
            yield from (("gates", X @ W.T), ("d_weights", d.T @ X), ("d_bias", d.sum(0)))
            yield from (("d_old_h", d_X[:, :H]), ("d_input", d_X[:, H:]))

        sizes = dict(results(abs(X), abs(W), abs(d)))
        return {name: (value, sizes[name]) for name, value in results(X, W, d)}


@pytest.fixture(params=TYPES)
def loops(request, variant):
    place, dtype = TYPES[request.param]
    gates = host_function("products", variant, place, GateProducts)
    return dtype, gates, host_function("products", variant, 2 + place, GradientProducts)


@pytest.fixture(params=VARIANTS)
def variant(request):
    return request.param


def check(arrays, names):
    for name, (value, size) in arrays.expected().items():
        if name in names:
            # float sums of n terms stray by a few roots of n units, never by more than n
            limit = 16 * np.finfo(arrays.dtype).eps * size
            actual = getattr(arrays, name).astype(np.float64)
            assert (abs(actual - value) <= limit).all(), (arrays.sizes, name)


def test_products_of_every_size(loops):
    dtype, gates, gradients = loops
    for sizes in SIZES:
        arrays = Arrays(dtype, *sizes, offset=3)
        arrays.call(gates, GateProducts)
        arrays.call(gradients, GradientProducts)
        check(arrays, ("gates", *OUTPUTS))


@pytest.mark.parametrize("sizes", [(0, 3, 2), (2, 0, 3), (1, 33, 17), (3, 5, 33), (16, 33, 100)])
def test_every_subset_of_gradients(loops, sizes):
    """What is wanted is computed, what is not wanted stays as it was."""
    dtype, _, gradients = loops
    for count in range(len(OUTPUTS)):
        for without in itertools.combinations(OUTPUTS, count):
            arrays = Arrays(dtype, *sizes)
            arrays.call(gradients, GradientProducts, without)
            check(arrays, set(OUTPUTS) - set(without))
            assert all(np.isnan(getattr(arrays, name)).all() for name in without)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("B, H, I", [(3, 5, 3), (3, 33, 31), (3, 64, 16), (1, 33, 31)])
def test_nan_and_infinity_go_where_the_sums_go(loops, bad, B, H, I):  # noqa: E741
    """Into all sums that the element is part of, and into no other."""
    dtype, gates, gradients = loops
    for name in ("input", "weights", "old_h", "d_gates"):
        for place in (0, -1):
            arrays = Arrays(dtype, B, H, I)
            getattr(arrays, name).flat[place] = bad
            arrays.call(gates, GateProducts)
            arrays.call(gradients, GradientProducts)
            with np.errstate(invalid="ignore"):
                expected = arrays.expected()
            for output, (value, _) in expected.items():
                actual = getattr(arrays, output)
                assert np.array_equal(np.isnan(actual), np.isnan(value)), (name, output)
                infinite = np.isinf(value)
                assert np.array_equal(actual[infinite], value[infinite]), (name, output)
                assert np.isfinite(actual[np.isfinite(value)]).all(), (name, output)


def test_same_bits_every_time(loops):
    dtype, gates, gradients = loops
    first, second = (Arrays(dtype, 15, 100, 33, offset) for offset in (0, 5))
    for arrays in (first, second):
        arrays.call(gates, GateProducts)
        arrays.call(gradients, GradientProducts)
    for name in ("gates", *OUTPUTS):
        assert np.array_equal(getattr(first, name), getattr(second, name)), name

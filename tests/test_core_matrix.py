"""The core's host products of matrices against float64, for every instruction set."""

import ctypes
import itertools

import numpy as np
import pytest
from core_tables import VARIANTS, host_function, structure

TYPES = {"float32": (0, np.float32), "float64": (1, np.float64)}
PANEL_BYTES = {"baseline": 48, "avx2": 96, "avx512": 192}
Packing = structure("MatrixPacking", "inner columns row_step column_step", "b packed")
Product = structure(
    "PackedProduct", "rows inner columns row_step column_step c_row_step adds", "a packed c"
)
# Tiles of 8, 4, 2 and 1 rows, panels that are not full, more than a part of k.
SIZES = list(itertools.product((0, 1, 3, 8, 23), (0, 1, 5, 256, 300), (0, 1, 13, 48, 100)))
GUARD = 12345.0


class Matrices:
    """a @ b as numpy draws them, and the functions of one instruction set."""

    def __init__(self, variant, type_name, rows, inner, columns, seed=0):
        place, self.dtype = TYPES[type_name]
        self.pack = host_function("products", variant, 4 + place, Packing)
        self.multiply = host_function("products", variant, 6 + place, Product)
        self.panel = PANEL_BYTES[variant] // np.dtype(self.dtype).itemsize
        self.sizes = rows, inner, columns
        pick = np.random.default_rng(seed)
        self.a = pick.uniform(-1, 1, (rows, inner)).astype(self.dtype)
        self.b = pick.uniform(-1, 1, (inner, columns)).astype(self.dtype)

    def packed(self, b):
        """Of `b`, with any strides, between two guards."""
        inner, columns = b.shape
        size = -(-columns // self.panel) * inner * self.panel
        block = np.full(size + 32, GUARD, self.dtype)
        out = block[16 : 16 + size]
        out[...] = np.nan
        steps = [step // b.itemsize for step in b.strides]
        where = b.ctypes.data, out.ctypes.data
        self.pack(ctypes.byref(Packing(inner, columns, *steps, *where)))
        assert (block[:16] == GUARD).all() and (block[16 + size :] == GUARD).all()
        assert np.isnan(out).any() == np.isnan(b).any()  # every element is written
        return out

    def product(self, a, packed, c, adds=False):
        (rows, inner), columns = a.shape, c.shape[1]
        steps = [step // a.itemsize for step in a.strides]
        arguments = (rows, inner, columns, *steps, c.strides[0] // c.itemsize, adds)
        where = a.ctypes.data, packed.ctypes.data, c.ctypes.data
        self.multiply(ctypes.byref(Product(*arguments, *where)))
        return c

    def expected(self):
        return self.a.astype(np.float64) @ self.b.astype(np.float64)

    def limit(self):
        """Sums of n terms stray by a few roots of n units, never by more than n."""
        size = abs(self.a).astype(np.float64) @ abs(self.b).astype(np.float64)
        return 16 * np.finfo(self.dtype).eps * size


@pytest.fixture(params=itertools.product(VARIANTS, TYPES), ids="-".join)
def kind(request):
    return request.param


def test_products_of_every_size(kind):
    for sizes in SIZES:
        case = Matrices(*kind, *sizes)
        rows, _, columns = sizes
        around = np.full((rows + 2, columns + 5), GUARD, case.dtype)
        inside = around[1 : 1 + rows, 2 : 2 + columns]
        for adds in (False, True):
            inside[...] = 1.5 if adds else np.nan
            case.product(case.a, case.packed(case.b), inside, adds)
            stray = abs(inside - (case.expected() + 1.5 * adds))
            assert (stray <= case.limit() + adds * np.finfo(case.dtype).eps * 4).all(), sizes
            inside[...] = GUARD
            assert (around == GUARD).all(), sizes


def test_any_strides(kind):
    """Transposes, some of the columns, every other row, rows from the last to the first."""
    case = Matrices(*kind, 13, 70, 53)
    straight = case.product(case.a, case.packed(case.b), np.empty((13, 53), case.dtype))
    for factor in ("a", "b"):
        original = getattr(case, factor)
        wide = np.full((2 * original.shape[0], original.shape[1] + 3), np.nan, case.dtype)
        wide[::2, 3:] = original
        views = (np.asfortranarray(original), wide[::2, 3:], original[::-1].copy()[::-1])
        for view in views:
            a, b = (view, case.b) if factor == "a" else (case.a, view)
            c = case.product(a, case.packed(b), np.empty((13, 53), case.dtype))
            assert np.array_equal(c, straight), factor


def test_parts_have_the_bits_of_the_whole(kind):
    """A product may be shared out by rows, and by panels."""
    case = Matrices(*kind, 37, 300, 100)
    packed = case.packed(case.b)
    whole = case.product(case.a, packed, np.empty((37, 100), case.dtype))
    parts = np.full_like(whole, np.nan)
    for rows, columns in itertools.product((0, 9, 10, 37), range(0, 100, case.panel)):
        case.product(case.a[rows:], packed[columns * 300 :], parts[rows:, columns:])
    assert np.array_equal(parts, whole)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_nan_and_infinity_go_where_the_sums_go(kind, bad):
    for name, place in itertools.product("ab", (0, -1)):
        case = Matrices(*kind, 11, 33, 29)
        getattr(case, name).flat[place] = bad
        c = case.product(case.a, case.packed(case.b), np.empty((11, 29), case.dtype))
        expected = case.expected()
        assert np.array_equal(np.isnan(c), np.isnan(expected))
        assert np.array_equal(c[np.isinf(expected)], expected[np.isinf(expected)])
        assert np.isfinite(c[np.isfinite(expected)]).all()

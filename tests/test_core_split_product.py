"""Large products of float by tensor cores, at float's accuracy, through the core's C ABI."""

import pytest
import torch
from conftest import require_device
from core_abi import core, exact, exported, multiply_workspace, poisoned, put

FLOAT = torch.float32
# rows, inner, columns: less than a tile, one, several that are not full, terms in many parts, and
# sums that are no multiple of a panel
SIZES = ((4, 4, 4), (128, 16, 128), (300, 72, 200), (132, 1028, 260), (64, 20000, 256), (8, 0, 12))
# Whether rows of a, and columns of b, lie dense.
LAYOUTS = ((True, True), (True, False), (False, False))


@pytest.fixture(autouse=True)
def hopper():
    require_device("cuda:0")
    exported("lltm_multiply_cuda_float")
    if multiply_workspace(4, 4, 4) == 0:
        pytest.skip(f"{torch.cuda.get_device_name()} has no such kernel")


def laid_out(matrix, rows_are_dense):
    """The same values in wider rows, or columns, on the GPU."""
    matrix = matrix if rows_are_dense else matrix.t()
    wide = torch.full((matrix.shape[0], matrix.shape[1] + 8), float("nan"))
    wide[:, 4:-4] = matrix
    inside = put(wide, None)[:, 4:-4]
    return inside if rows_are_dense else inside.t()


def draw(rows, inner, columns):
    return torch.randn(rows, inner), torch.randn(inner, columns)


def multiply(a, b, layout=(True, True), c=None):
    """c += a b if there is one, in rows that are too long."""
    dense_rows, dense_columns = layout
    a, b = laid_out(a, dense_rows), laid_out(b, not dense_columns)
    rows, inner, columns = *a.shape, b.shape[1]
    wide = poisoned(FLOAT, rows, columns + 3)
    if c is not None:
        wide[:, :columns] = put(c, None)
    workspace = poisoned(FLOAT, multiply_workspace(rows, inner, columns))
    arguments = (a, *a.stride(), b, *b.stride(), wide, wide.stride(0), int(c is not None))
    assert core("multiply", FLOAT)(rows, inner, columns, *arguments, workspace) == 0
    result = exact(wide)
    assert result[:, columns:].isnan().all()
    return result[:, :columns]


def sums_of_magnitudes(a, b):
    return a.double().abs() @ b.double().abs()


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
@pytest.mark.parametrize("sizes", SIZES, ids=str)
def test_values(sizes, layout):
    a, b = draw(*sizes)
    want = a.double() @ b.double()
    got = multiply(a, b, layout)
    limit = 3e-7 * want.norm()
    assert (got - want).norm() <= limit
    assert torch.equal(multiply(a, b, layout), got)
    c = torch.randn(want.shape)
    # What it is added to is rounded with it.
    assert (multiply(a, b, layout, c) - want - c.double()).norm() <= limit + 1e-7 * c.norm()


def test_tensor_cores_multiply():
    """What two halves keep of a value comes out, and not the value itself: no other sum is made."""
    b = torch.randn(64, 128)
    got = multiply(torch.eye(64), b)
    assert not torch.equal(got, b.double())
    assert ((got - b).abs() <= 2.0**-21 * b.abs()).all()


def test_what_is_normal_in_the_end_keeps_its_bits():
    """Though a scale alone would make it subnormal on the way."""
    a, b = torch.zeros(4, 4), torch.zeros(4, 4)
    a[0, :2], a[1, :2] = torch.tensor([2.0**-100, 2.0**-126]), torch.tensor([2.0**-112, 2.0**-136])
    b[1, 0], b[2, 0], b[1, 1], b[2, 1] = (
        1.2345678 * 2.0**74,
        2.0**100,
        1.2345678 * 2.0**103,
        2.0**127,
    )
    want = a.double() @ b.double()
    assert (want[:2, :2] > 2.0**-126).all()
    assert ((multiply(a, b) - want).abs() <= 1e-6 * want).all()


def test_a_sum_of_parts_is_added_once():
    a, b = torch.full((4, 20480), 2.0**-10), torch.full((20480, 4), 2.0**-4)
    got = multiply(a, b, c=torch.full((4, 4), 2.0**24))
    assert torch.equal(got, torch.full((4, 4), 2.0**24 + 2, dtype=torch.float64))


def test_errs_less_than_multiply_adds():
    a, b = draw(256, 2048, 384)
    want = a.double() @ b.double()
    assert (multiply(a, b) - want).norm() <= ((a @ b).double() - want).norm()


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
def test_any_magnitude_of_rows_and_columns(layout):
    a, b = draw(256, 160, 132)
    a *= 10.0 ** torch.linspace(-33, 33, 256)[:, None]
    b *= 10.0 ** torch.linspace(-4, 4, 132)[torch.randperm(132)]
    a[5], b[:, 9] = 0, 0
    error = (multiply(a, b, layout) - a.double() @ b.double()).abs()
    assert (error <= 2e-7 * sums_of_magnitudes(a, b) + 1e-37).all()


def test_magnitudes_within_a_row():
    """As exact as float, term by term, up to 2^28 below the largest; from there on to that."""
    a, b = draw(128, 64, 128)
    a[:, 0], b[0] = 2.0**26, 2.0**-26
    error = (multiply(a, b) - a.double() @ b.double()).abs()
    assert (error <= 2e-7 * sums_of_magnitudes(a, b)).all()
    a[:, 0], b[0] = 2.0**60, 0
    error = (multiply(a, b) - a.double() @ b.double()).abs()
    assert (error <= 2.0**60 * 2.0**-50 * b.double().abs().sum(0)).all()


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
def test_infinity_and_nan(layout):
    """As sums of multiply-adds have them."""
    a, b = draw(140, 72, 260)
    a[3, 5], a[130, 70], a[9, 1], b[7, 100] = float("inf"), float("-inf"), float("nan"), -1e38
    a[:2, 7], b[5, 1], b[70, 2] = 3e38, 0, float("inf")
    want = (a.double() @ b.double()).float()
    for got in (multiply(a, b, layout), multiply(a, b, layout, torch.ones(140, 260)) - 1):
        assert torch.equal(got.isnan(), want.isnan())
        for sign in (1, -1):
            assert torch.equal((got * sign).float() == float("inf"), want * sign == float("inf"))


def test_statuses():
    some = put(torch.ones(16, 16), None)
    workspace = put(torch.zeros(multiply_workspace(8, 8, 8)), None)
    odd = some.view(-1)[1:]
    good = [8, 8, 8, some, 16, 1, some, 1, 16, some, 8, 0, workspace]
    multiply_cuda = core("multiply", FLOAT)
    for place, value, status in (
        (1, -1, -1),
        (2, -1, -2),
        (3, -1, -3),
        (1, 1 << 62, -2),
        (4, None, -4),
        (4, odd, -4),
        (5, 17, -5),
        (2, 7, -2),
        (6, 2, -6),
        (7, None, -7),
        (7, odd, -7),
        (9, 17, -9),
        (8, 2, -9),
        (10, None, -10),
        (11, 7, -11),
        (13, None, -13),
    ):
        arguments = [value if i == place - 1 else x for i, x in enumerate(good)]
        assert multiply_cuda(*arguments) == status, (place, value)
    # Rows of a and of b lie dense, or columns of a and rows of b.
    for place, value, status in ((3, 6, -3), (8, 18, -8)):
        arguments = [8, 8, 8, some, 16, 1, some, 16, 1, some, 8, 0, workspace]
        arguments[place - 1] = value
        assert multiply_cuda(*arguments) == status, (place, value)
    for place, value, status in ((1, 6, -1), (6, 18, -6)):
        arguments = [8, 8, 8, some, 1, 16, some, 16, 1, some, 8, 0, workspace]
        arguments[place - 1] = value
        assert multiply_cuda(*arguments) == status, (place, value)
    # Columns of b do only if rows of a do.
    assert multiply_cuda(8, 8, 8, some, 1, 16, some, 1, 16, some, 8, 0, workspace) == -9
    for rows, columns in ((0, 8), (8, 0)):
        nothing = (rows, 8, columns, None, 8, 1, None, 1, 8, None, 8, 0, None)
        assert multiply_cuda(*nothing) == 0
        assert multiply_workspace(rows, 8, columns) == 0
    assert multiply_workspace(1 << 32, 8, 1 << 32) == 0
    torch.cuda.synchronize()

"""The product of a whole sequence with the weights of its inputs, through the core's C ABI."""

import pytest
import torch
from conftest import require_device
from core_abi import CTYPES, TOLERANCES, core, exact, exported, from_host, poisoned

# rows, inner, columns: one tile, several, none of them full, sums of one part and of many
SIZES = (
    (1, 1, 1),
    (64, 16, 64),
    (8, 64, 192),
    (65, 17, 66),
    (130, 100, 33),
    (3, 200, 7),
    (200, 3, 130),
    (5, 0, 9),
)


@pytest.fixture(params=list(CTYPES), ids=str)
def dtype(request):
    require_device("cuda:0")
    exported("lltm_sequence_product_cuda_float")
    return request.param


def draw(dtype, rows, inner, columns, transposed, before=0, behind=0):
    """a, and weights with other columns around them; sums of their products are about one."""
    scale = max(inner, 1) ** -0.5
    a = (scale * torch.randn(rows, inner, dtype=torch.float64)).to(dtype).cuda()
    lines, length = (columns, inner) if transposed else (inner, columns)
    wide = from_host(dtype, lines, before + length + behind)
    return a, wide, slice(before, before + length)


def multiply(dtype, a, wide, used, transposed, tf32=0):
    rows, inner = a.shape
    weights = wide[:, used]
    columns = weights.shape[0 if transposed else 1]
    c = poisoned(dtype, rows, columns)
    stride = weights.stride(0)
    status = core("sequence_product", dtype)(
        rows, inner, columns, a, weights, stride, int(transposed), tf32, c
    )
    assert status == 0
    return c


def expected(a, wide, used, transposed):
    weights = exact(wide)[:, used]
    return exact(a) @ (weights.t() if transposed else weights)


@pytest.mark.parametrize("transposed", (True, False), ids=("transposed", "straight"))
@pytest.mark.parametrize("sizes", SIZES, ids=str)
def test_values(dtype, sizes, transposed):
    for around in ((0, 0), (64, 0), (3, 1)):
        operands = draw(dtype, *sizes, transposed, *around)
        c = multiply(dtype, *operands, transposed)
        want = expected(*operands, transposed)
        torch.testing.assert_close(exact(c), want, **TOLERANCES[dtype])
        assert torch.equal(multiply(dtype, *operands, transposed).cpu(), c.cpu())


@pytest.mark.parametrize("transposed", (True, False), ids=("transposed", "straight"))
def test_tf32(dtype, transposed):
    """Factors are rounded to eleven bits where the GPU can; of other types than float none is."""
    operands = draw(dtype, 150, 90, 70, transposed)
    c, full = (multiply(dtype, *operands, transposed, tf32) for tf32 in (1, 0))
    if dtype != torch.float32:
        assert torch.equal(c.cpu(), full.cpu())
    elif torch.cuda.is_available() and torch.cuda.get_device_capability()[0] == 9:
        assert not torch.equal(c.cpu(), full.cpu())
    want = expected(*operands, transposed)
    assert (exact(c) - want).norm() <= (2**-8 if dtype == torch.bfloat16 else 2**-11) * want.norm()


@pytest.mark.parametrize("transposed", (True, False), ids=("transposed", "straight"))
@pytest.mark.parametrize("bad", (float("nan"), float("inf")))
def test_infinity_and_nan(dtype, bad, transposed):
    """They reach the sums that they are part of, and no others."""
    for which in range(2):
        operands = draw(dtype, 70, 21, 67, transposed, 1, 2)
        for place in (1, -3):
            operands[which][place, place] = bad
        want = expected(*operands, transposed).isfinite()
        for tf32 in (0, 1):
            c = multiply(dtype, *operands, transposed, tf32)
            assert torch.equal(exact(c).isfinite(), want)


def test_statuses(dtype):
    function, some = core("sequence_product", dtype), from_host(dtype, 8, 8)
    good = [4, 4, 8, some, some, 8, 0, 0, some]
    for place, value, status in (
        (1, -1, -1),
        (2, -1, -2),
        (3, -1, -3),
        (1, 1 << 62, -2),
        (3, 1 << 62, -3),
        (4, None, -4),
        (5, None, -5),
        (6, 7, -6),
        (6, 1 << 62, -6),
        (9, None, -9),
    ):
        arguments = [value if i == place - 1 else x for i, x in enumerate(good)]
        assert function(*arguments) == status, (place, value)
    assert function(4, 4, 8, some, some, 3, 1, 0, some) == -6  # a row of the transpose is longer
    for nothing in ((0, 4, 8), (4, 4, 0)):
        assert function(*nothing, None, None, 8, 0, 0, None) == 0
    torch.cuda.synchronize()

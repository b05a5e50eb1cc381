"""The gradients of a sequence's parameters in one call, through the core's C ABI."""

import pytest
import torch
from conftest import require_device
from core_abi import (
    CTYPES,
    TOLERANCES,
    core,
    exact,
    exported,
    from_host,
    gradients_workspace,
    poisoned,
)

# T, B, H, I: fewer rows than a part, many parts, several tiles, nothing aligned
SIZES = (
    (1, 1, 1, 1),
    (3, 2, 5, 7),
    (40, 7, 33, 20),
    (9, 64, 64, 64),
    (65, 3, 100, 140),
    (4, 3, 8, 0),
)


@pytest.fixture(params=list(CTYPES), ids=str)
def dtype(request):
    require_device("cuda:0")
    exported("lltm_sequence_gradients_cuda_float")
    return request.param


def draw(dtype, T, B, H, I):  # noqa: E741
    """d_gates, input, h0, output; sums of them are about one."""
    scale = (T * B) ** -0.5
    d_gates = (scale * torch.randn(T * B, 3 * H, dtype=torch.float64)).to(dtype).cuda()
    return d_gates, *(from_host(dtype, rows, n) for rows, n in ((T * B, I), (B, H), (T * B, H)))


def launch(dtype, sizes, reverse, operands, without=(), tf32=0):
    T, B, H, I = sizes  # noqa: E741
    compute = torch.float64 if dtype == torch.float64 else torch.float32
    workspace = poisoned(compute, gradients_workspace(T * B, B, H, I))
    d_weights = None if "d_weights" in without else poisoned(dtype, 3 * H, H + I)
    d_bias = None if "d_bias" in without else poisoned(dtype, 3 * H)
    status = core("sequence_gradients", dtype)(
        T * B, B, H, I, reverse, tf32, *operands, workspace, d_weights, d_bias
    )
    return status, d_weights, d_bias


def expected(operands, reverse):
    d_gates, x, h0, output = operands
    first = torch.zeros(0) if h0 is None else exact(h0)
    rows = output.shape[0] - first.shape[0]
    old_h = [first, exact(output)[:rows]]
    if reverse:
        old_h = [exact(output)[output.shape[0] - rows :], first]
    return exact(d_gates).t() @ torch.cat([torch.cat(old_h), exact(x)], 1), exact(d_gates).sum(0)


@pytest.mark.parametrize("reverse", (0, 1))
@pytest.mark.parametrize("sizes", SIZES, ids=str)
def test_values(dtype, sizes, reverse):
    operands = draw(dtype, *sizes)
    status, d_weights, d_bias = launch(dtype, sizes, reverse, operands)
    assert status == 0
    for got, want in zip((d_weights, d_bias), expected(operands, reverse)):
        torch.testing.assert_close(exact(got), want, **TOLERANCES[dtype])
    for without in (("d_bias",), ("d_weights",), ("d_weights", "d_bias")):
        status, *some = launch(dtype, sizes, reverse, operands, without)
        assert status == 0
        for got, want in zip(some, (d_weights, d_bias)):
            assert got is None or torch.equal(got.cpu(), want.cpu())

    # Without h0 the first step's old h is zero.
    d_gates, x, h0, output = operands
    zeros = torch.zeros(h0.shape, dtype=dtype).cuda()  # from the host
    _, of_zeros, _ = launch(dtype, sizes, reverse, (d_gates, x, zeros, output))
    status, of_none, _ = launch(dtype, sizes, reverse, (d_gates, x, None, output))
    assert status == 0 and torch.equal(of_none.cpu(), of_zeros.cpu())


@pytest.mark.parametrize("bad", (float("nan"), float("inf")))
def test_infinity_and_nan(dtype, bad):
    """They reach the sums that they are part of, and no others."""
    sizes = (30, 3, 20, 12)
    for place in range(4):
        for reverse in (0, 1):
            operands = draw(dtype, *sizes)
            operands[place][-1, -1] = bad
            for tf32 in (0, 1):
                status, *got = launch(dtype, sizes, reverse, operands, tf32=tf32)
                assert status == 0
                for gradient, want in zip(got, expected(operands, reverse)):
                    assert torch.equal(exact(gradient).isfinite(), want.isfinite()), place


@pytest.mark.parametrize("tf32", (0, 1))
def test_the_same_bits_again(dtype, tf32):
    sizes = (100, 16, 64, 64)
    operands = draw(dtype, *sizes)
    _, *first = launch(dtype, sizes, 0, operands, tf32=tf32)
    for _ in range(20):
        _, *again = launch(dtype, sizes, 0, operands, tf32=tf32)
        assert all(torch.equal(a.cpu(), b.cpu()) for a, b in zip(again, first))


def test_tf32(dtype):
    """Factors are rounded to eleven bits where the GPU can; nothing else is."""
    sizes = (65, 3, 100, 140)
    operands = draw(dtype, *sizes)
    _, full, full_bias = launch(dtype, sizes, 0, operands)
    status, d_weights, d_bias = launch(dtype, sizes, 0, operands, tf32=1)
    assert status == 0 and torch.equal(d_bias.cpu(), full_bias.cpu())
    if dtype != torch.float32:
        assert torch.equal(d_weights.cpu(), full.cpu())
    elif torch.cuda.is_available() and torch.cuda.get_device_capability()[0] == 9:
        assert not torch.equal(d_weights.cpu(), full.cpu())
    want, _ = expected(operands, 0)
    limit = 2**-8 if dtype == torch.bfloat16 else 2**-11
    assert (exact(d_weights) - want).norm() <= limit * want.norm()


def test_empty_sums_are_zero(dtype):
    nothing = (None,) * 4
    for sizes in ((0, 2, 4, 3), (0, 0, 4, 3), (3, 2, 0, 3), (0, 1, 4, 0)):
        status, d_weights, d_bias = launch(dtype, sizes, 0, nothing)
        assert status == 0 and not exact(d_weights).any() and not exact(d_bias).any(), sizes


def test_statuses(dtype):
    function, some = core("sequence_gradients", dtype), from_host(dtype, 4, 48)
    for sizes, status in (
        ((-1, 1, 4, 4), -1),
        ((4, -1, 4, 4), -2),
        ((4, 3, 4, 4), -2),
        ((4, 0, 4, 4), -2),
        ((4, 2, -1, 4), -3),
        ((4, 2, 4, -1), -4),
        ((4, 2, 4, 1 << 62), -4),
        ((4, 2, 1 << 62, 4), -1),
        ((1 << 62, 2, 4, 4), -1),
    ):
        assert function(*sizes, 0, 0, *[some] * 7) == status, sizes
    for place, status in ((0, -7), (1, -8), (3, -10), (4, -11)):
        operands = [None if i == place else some for i in range(7)]
        assert function(4, 2, 4, 4, 0, 0, *operands) == status
    torch.cuda.synchronize()

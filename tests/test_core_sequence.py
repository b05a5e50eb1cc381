"""Whole sequences in one block each, through the core's C ABI, and the plans."""

import pytest
import torch
from conftest import require_device
from core_abi import CTYPES, Options, Plan, core, exact, from_host, numbers_to_cuda, poisoned
from sequence_helpers import ragged

from lltm_decoupled import reference

NONE, BLOCK, GRID = 0, 1, 2
HALF = {torch.float16: 4e-3, torch.bfloat16: 3e-2}  # of h, which every step rounds again


@pytest.fixture(params=[dtype for dtype in CTYPES if dtype != torch.float64], ids=str)
def dtype(request):
    require_device("cuda:0")
    return request.param


def compute_type(dtype):
    return torch.float64 if dtype == torch.float64 else torch.float32


def spreads():
    """Whether this GPU has the kernels of LLTM_SEQUENCE_GRID."""
    return torch.cuda.get_device_capability()[0] == 9


@pytest.mark.parametrize("packed", (0, 1))
@pytest.mark.parametrize("reverse", (0, 1))
@pytest.mark.parametrize("sizes", ((1, 1, 1), (5, 3, 33), (9, 7, 64), (4, 150, 100)), ids=str)
def test_forward_and_backward(dtype, sizes, reverse, packed):
    """One row a block and two; widths with padding and without; a stride beyond the state."""
    check_passes(dtype, sizes, reverse, packed)


def check_passes(dtype, sizes, reverse, packed, without=()):
    """`without`: which of bias, h0, grad_output and d_h are null."""
    T, B, H = sizes
    batch_sizes = ragged(T, B) if packed else None
    shape = (int(batch_sizes.sum()),) if packed else (T, B)
    first_rows = torch.cat([torch.tensor([3]), batch_sizes]).cumsum(0).cuda() if packed else None
    host = (torch.randn(3 * H, H + 5, dtype=torch.float64) / H**0.5).to(dtype)
    weights, strided = host.cuda(), (host.cuda()[:, :H], H + 5)

    def draw(name, *shape):
        return None if name in without else from_host(dtype, *shape)

    gates, h0, bias = from_host(dtype, *shape, 3 * H), draw("h0", B, H), draw("bias", 3 * H)
    nothing = torch.zeros(B, H, dtype=dtype).cuda()
    cell = from_host(torch.float32, B, H)

    # The gates as the reference's input, with weights that pass them through.
    x = exact(gates).requires_grad_()
    wide = torch.cat([host[:, :H].double(), torch.eye(3 * H).double()], 1)
    h, c = exact(nothing if h0 is None else h0).requires_grad_(), exact(cell).requires_grad_()
    output, h_n, c_n = reference.lltm_sequence(
        x,
        wide,
        None if bias is None else exact(bias),
        h,
        c,
        batch_sizes=batch_sizes,
        reverse=bool(reverse),
    )

    tolerance = HALF.get(dtype, 1e-5)
    new_cell, got = poisoned(dtype, *shape, H), poisoned(dtype, *shape, H)
    activations = gates.clone()
    forward = core("sequence_forward", dtype)
    sizes_and_weights = (T, B, H, weights, strided[1], reverse, first_rows)
    carried, last = cell.clone(), poisoned(dtype, B, H)
    tail = (None, carried, got, new_cell, last, None, None)
    assert forward(*sizes_and_weights, bias, activations, h0, *tail) == 0
    torch.testing.assert_close(exact(last), h_n.detach(), rtol=tolerance, atol=tolerance)
    torch.testing.assert_close(exact(got), output.detach(), rtol=tolerance, atol=tolerance)
    torch.testing.assert_close(exact(carried), c_n.detach(), rtol=tolerance, atol=T * tolerance)
    again, last_c = poisoned(dtype, *shape, H), poisoned(dtype, B, H)
    c0 = cell.cpu().to(dtype).cuda()
    carried = exact(c0).float().cuda()
    same = (*sizes_and_weights, bias, gates, h0)
    assert forward(*same[:-2], gates.clone(), h0, None, carried, got, None, None, None, None) == 0
    assert forward(*same, c0, None, again, None, None, last_c, None) == 0
    assert torch.equal(again.cpu(), got.cpu())
    assert torch.equal(last_c.cpu(), carried.cpu().to(dtype))
    states = (nothing, nothing, None)
    assert forward(*same[:-2], gates.clone(), *states, got, None, None, last_c, None) == 0
    from_nothing = poisoned(dtype, B, H)
    arguments = (gates.clone(), None, None, None, again, None, None, from_nothing, None)
    assert forward(*same[:-2], *arguments) == 0
    assert torch.equal(again.cpu(), got.cpu()) and torch.equal(from_nothing.cpu(), last_c.cpu())

    grad_output, d_h = draw("grad_output", *shape, H), draw("d_h", B, H)
    d_cell = from_host(torch.float32, B, H)
    used = [(o, g) for o, g in ((output, grad_output), (h_n, d_h), (c_n, d_cell)) if g is not None]
    want = torch.autograd.grad([o for o, _ in used], (x, h, c), [exact(g) for _, g in used])
    d_gates, d_h0 = poisoned(dtype, *shape, 3 * H), poisoned(dtype, B, H)
    backward = core("sequence_backward", dtype)
    kept, d_c_n = (grad_output, activations, new_cell, d_h), d_cell.clone()
    tail = (None, d_cell, d_h0, None, d_gates, None)
    assert backward(*sizes_and_weights, *kept, *tail) == 0
    scale = max(1.0, want[0].abs().max().item())
    for actual, expected in zip((d_gates, d_h0, d_cell), want):
        torch.testing.assert_close(
            exact(actual), expected, rtol=T * tolerance, atol=T * tolerance * scale
        )
    check_d_cell(lambda *tail: backward(*sizes_and_weights, *kept, *tail, None), d_c_n, d_gates)


def check_d_cell(backward, d_c_n, d_gates):
    """The gradients of the last and the first cell in their own type, or zeros and not wanted."""
    dtype = d_gates.dtype
    d_c_n = d_c_n.cpu().to(dtype)
    got, wanted = d_gates, poisoned(dtype, *d_gates.shape)
    for last in (d_c_n, torch.zeros_like(d_c_n)):
        carried, d_c0 = last.to(compute_type(dtype)).cuda(), poisoned(dtype, *last.shape)
        assert backward(None, carried, None, None, wanted) == 0
        assert backward(last.cuda() if last is d_c_n else None, None, None, d_c0, got) == 0
        assert torch.equal(got.cpu(), wanted.cpu())
        assert torch.equal(d_c0.cpu(), carried.cpu().to(dtype))
    assert backward(None, None, None, None, got) == 0
    assert torch.equal(got.cpu(), wanted.cpu())


def test_plan():
    require_device("cuda:0")
    for dtype in CTYPES:
        plan, bits = Plan(), torch.finfo(dtype).bits
        small = BLOCK if bits < 64 else GRID if spreads() else NONE
        for way in (0, 1):
            for sizes, path in (
                ((9, 16, 128), small),
                ((9, 16, 1), BLOCK if bits < 64 else NONE),
                ((0, 16, 128), BLOCK if bits < 64 else NONE),
                ((9, 16, 129), NONE),
                ((9, 1 << 20, 16), NONE),
                ((9, 1 << 16, 256), NONE),
                ((9, 16, 4096), NONE),
                ((1 << 31, 0, 16), NONE),
                ((1 << 31, 1, 16), NONE),
                (((1 << 31) - 1, 1, 16), NONE),
            ):
                assert core("sequence_plan", dtype)(way, 0, *sizes, plan) == 0
                assert plan.path == path, sizes
                assert path == GRID or (plan.blocks, plan.workspace) == (0, 0), sizes
            for tf32 in (0, 1) if spreads() else ():
                slot = 16 * 512 * (bits // 8) * (3 if way else 1)
                if tf32 and dtype == torch.float32:
                    slot = slot * 2 // 3 if way else slot // 2
                slots = max(n for n in (32, 64, 128) if n == 32 or n * slot <= 8 << 20)
                if tf32 and dtype == torch.float32 and way:
                    slots = 2
                for steps in (9, 40, 1000):
                    assert core("sequence_plan", dtype)(way, tf32, steps, 16, 512, plan) == 0
                    assert plan.path == GRID
                    assert plan.workspace == min(steps, slots) * slot
                    assert plan.blocks * 8 in [16 * 512 // units for units in (8, 16, 32)]


def test_plan_statuses():
    require_device("cuda:0")
    good = [0, 0, 9, 16, 512, Plan(7, 7, 7)]
    for dtype in CTYPES:
        for place, value in ((3, -1), (4, -1), (4, 1 << 62), (5, -1), (6, None)):
            arguments = [value if i == place - 1 else x for i, x in enumerate(good)]
            assert core("sequence_plan", dtype)(*arguments) == -place, (place, value)
        # All sizes fit, but not in one memory.
        assert core("sequence_plan", dtype)(0, 0, 1 << 30, 1 << 20, 1 << 20, Plan()) == -3
        # More steps than a launch takes.
        some, steps = from_host(dtype, 1, 4), 1 << 31
        tail = (0, None, *[some] * 9)
        assert core("sequence_forward", dtype)(steps, 1, 1, some, 1, *tail, None) == -1
        assert core("sequence_backward", dtype)(steps, 1, 1, some, 1, *tail, None) == -1
    assert (good[5].path, good[5].blocks, good[5].workspace) == (7, 7, 7)


def test_statuses_of_options_and_strides(dtype):
    some = from_host(dtype, 16, 16)
    workspace = torch.zeros(1024, dtype=torch.uint8).cuda()
    for way in ("sequence_forward", "sequence_backward"):
        for steps_before in (0, -1):  # one block has these sizes, whose plan has no workspace
            options = Options(0, workspace.data_ptr(), None, 0, steps_before)
            without_outer = [
                None if i == (2 if way.endswith("forward") else 6) else some for i in range(9)
            ]
            tail = (0, None, *without_outer, options)
            assert core(way, dtype)(2, 2, 2, some, 2, *tail) == -17
        for stride in (1, 1 << 62, (1 << 63) - 1):
            assert core(way, dtype)(2, 2, 2, some, stride, 0, None, *[some] * 9, None) == -5


def test_numbers_from_host_memory_that_is_reused():
    require_device("cuda:0")
    for count in (0, 1, 480, 2000):
        numbers = torch.randint(-(2**62), 2**62, (count,))
        before, to = numbers.clone(), torch.zeros(count + 1, dtype=torch.int64).cuda()
        torch.cuda._sleep(1000000)
        assert numbers_to_cuda(count, numbers, to) == 0
        numbers.zero_()
        assert torch.equal(to.cpu()[:count], before) and to.cpu()[count] == 0
    assert numbers_to_cuda(-1, numbers, to) == -1
    assert numbers_to_cuda(1, None, to) == -2
    assert numbers_to_cuda(1, numbers, None) == -3


def test_statuses(dtype):
    forward, backward = (core(f"sequence_{way}", dtype) for way in ("forward", "backward"))
    some = from_host(torch.float64, 2, 100)
    for call, count, wrong in (
        (forward, 9, {1: -9, 5: -13}),
        (backward, 9, {1: -9, 2: -10, 8: -16}),
    ):
        arguments = [some] * count + [None]
        assert call(-1, 2, 4, some, 4, 0, None, *arguments) == -1
        assert call(2, -1, 4, some, 4, 0, None, *arguments) == -2
        assert call(2, 2, -1, some, 4, 0, None, *arguments) == -3
        assert call(2, 2, 4, None, 4, 0, None, *arguments) == -4
        assert call(2, 2, 4, some, 3, 0, None, *arguments) == -5
        assert call(2, 2, 4096, some, 4096, 0, None, *arguments) == -3
        for position, status in wrong.items():
            arguments = [None if i == position else some for i in range(count)] + [None]
            assert call(2, 2, 4, some, 4, 0, None, *arguments) == status
        if call is forward:  # without cell c_n is wanted
            arguments = [some, some, some, some, None, some, None, None, None, None]
            assert call(2, 2, 4, some, 4, 0, None, *arguments) == -12
        assert call(0, 2, 4, None, 4, 0, None, *[None] * (count + 1)) == 0
        assert call(2, 0, 4, None, 4, 0, None, *[None] * (count + 1)) == 0
    torch.cuda.synchronize()

"""Sequences that spread over a Hopper GPU, through the core's C ABI."""

import core_abi
import pytest
import torch
from conftest import require_device
from core_abi import CTYPES, Options, Plan, core, exact, from_host, poisoned
from sequence_helpers import ragged
from test_core_sequence import GRID, HALF, check_d_cell, compute_type


@pytest.fixture(params=CTYPES, ids=str)
def dtype(request):
    require_device("cuda:0")
    return request.param


# (steps, batch_size, state_size): one group of rows a block and several, blocks of 8, 16 and 32
# units, alone and in clusters, padded units and rows, more steps than slots. float64 has fewer.
SPREAD = ((6, 3, 130), (4, 17, 256), (75, 64, 256), (5, 16, 512), (5, 70, 512), (4, 9, 770))
SPREAD += ((4, 16, 1024), (5, 64, 1022), (4, 140, 1024), (75, 140, 512), (4, 16, 1536))
SPREAD += ((4, 40, 1400), (4, 16, 2048), (5, 40, 2000), (6, 9, 60), (5, 150, 128), (70, 33, 1000))
SPREAD += ((4, 8, 600), (5, 40, 600), (4, 70, 600), (5, 8, 700), (5, 30, 700), (40, 30, 1000))
SPREAD += ((5, 12, 300), (4, 30, 384), (75, 70, 380), (4, 130, 384), (4, 20, 600), (75, 150, 640))
PACKED = ((6, 3, 130), (75, 64, 256), (5, 70, 512), (9, 33, 1024))


def spread(dtype, way, sizes, patience=0, tf32=0):
    """(options, failure) of a launch that spreads over the GPU; skips where there is none."""
    plan = Plan()
    assert core("sequence_plan", dtype)(way, tf32, *sizes, plan) == 0
    if plan.path != GRID:
        pytest.skip(f"{torch.cuda.get_device_name()} has no kernel that spreads {sizes}")
    workspace = torch.empty(plan.workspace, dtype=torch.uint8, device=core_abi.gpu.memory)
    failure = torch.zeros(1, dtype=torch.int32).cuda()
    options = Options(tf32, workspace.data_ptr(), failure.data_ptr(), patience)
    options.keep = workspace  # as long as the options
    return options, failure


def draw_spread(dtype, sizes, reverse=0, batch_sizes=None):
    T, B, H = sizes
    # In many steps larger weights would make every error larger.
    size = (0.5 if T > 100 else 1) / H**0.5
    weights = (torch.randn(3 * H, H + 2, dtype=torch.float64) * size).to(dtype)
    shape = (T, B) if batch_sizes is None else (sum(batch_sizes),)
    gates, cell = from_host(dtype, *shape, 3 * H), from_host(compute_type(dtype), B, H)
    first_rows = batch_sizes and torch.tensor([0, *batch_sizes]).cumsum(0).cuda()
    arguments = (T, B, H, weights.cuda(), H + 2, reverse, first_rows)
    return arguments, weights[:, :H].double(), gates, cell


def loop(weights, gates, cell, reverse, dtype, batch_sizes=None):
    """The same in float64, h rounded in each step: the gates of first steps hold their products."""
    steps = list(gates if batch_sizes is None else gates.split(batch_sizes))
    outputs, h = steps[:], torch.zeros_like(cell)
    for t in reversed(range(len(steps))) if reverse else range(len(steps)):
        n = len(steps[t])
        i, o, e = (steps[t] + h[:n] @ weights.t()).chunk(3, 1)
        new_cell = cell[:n] + torch.nn.functional.elu(e) * i.sigmoid()
        new_h = new_cell.tanh() * o.sigmoid()
        outputs[t] = new_h = new_h + (new_h.to(dtype).double() - new_h).detach()
        h, cell = torch.cat([new_h, h[n:]]), torch.cat([new_cell, cell[n:]])
    return torch.cat(outputs).view(gates.shape[:-1] + h.shape[1:]), h, cell


@pytest.mark.parametrize("reverse", (0, 1))
@pytest.mark.parametrize("sizes", SPREAD, ids=str)
def test_spread_forward_and_backward(dtype, sizes, reverse):
    check_spread(dtype, sizes, reverse)


@pytest.mark.parametrize("reverse", (0, 1))
@pytest.mark.parametrize("sizes", PACKED, ids=str)
def test_spread_packed_data(dtype, sizes, reverse):
    check_spread(dtype, sizes, reverse, ragged(*sizes[:2]).tolist())


# As long as an exchange of 32 slots, 64 and 128, one step less and more; in turns; clusters.
AROUND = tuple((steps, 16, 256) for steps in (31, 32, 33, 64, 65, 128, 129, 257))
AROUND += ((32, 64, 1024), (33, 64, 1024), (65, 256, 256), (150, 16, 2048), (150, 8, 1000))
AROUND += ((33, 600, 256),)


@pytest.mark.parametrize("packed", (False, True))
@pytest.mark.parametrize("sizes", AROUND, ids=str)
def test_the_exchange_begins_anew(dtype, sizes, packed):
    check_spread(dtype, sizes, 0, ragged(*sizes[:2]).tolist() if packed else None)


def check_spread(dtype, sizes, reverse, batch_sizes=None):
    arguments, weights, gates, cell = draw_spread(dtype, sizes, reverse, batch_sizes)
    options, failure = spread(dtype, 0, sizes)
    T, B, H = sizes
    x, c = exact(gates).requires_grad_(), exact(cell).requires_grad_()
    bias = from_host(dtype, 3 * H)
    output, h_n, c_n = loop(weights, x + exact(bias), c, reverse, dtype, batch_sizes)

    tolerance = {**HALF, torch.float64: 1e-13}.get(dtype, 1e-5)
    new_cell, got = poisoned(dtype, *output.shape), poisoned(dtype, *output.shape)
    activations, carried = gates.clone(), cell.clone()
    forward = core("sequence_forward", dtype)
    last = poisoned(dtype, B, H)
    tail = (None, None, carried, got, new_cell, last, None, options)
    assert forward(*arguments, bias, activations, *tail) == 0
    torch.testing.assert_close(exact(last), h_n.detach(), rtol=tolerance, atol=tolerance)
    torch.testing.assert_close(exact(got), output.detach(), rtol=tolerance, atol=tolerance)
    torch.testing.assert_close(exact(carried), c_n.detach(), rtol=tolerance, atol=T * tolerance)
    again, last_c = poisoned(dtype, *output.shape), poisoned(dtype, B, H)
    c0 = cell.cpu().to(dtype).cuda()
    carried = exact(c0).to(cell.dtype).cuda()
    tail = (carried, got, None, None, None, options)
    assert forward(*arguments, bias, gates.clone(), None, None, *tail) == 0
    tail = (None, c0, None, again, None, None, last_c, options)
    assert forward(*arguments, bias, gates.clone(), *tail) == 0
    assert torch.equal(again.cpu(), got.cpu())
    assert torch.equal(last_c.cpu(), carried.cpu().to(dtype))
    c0.zero_()
    from_nothing = poisoned(dtype, B, H)
    for first, h, last in ((c0, got, last_c), (None, again, from_nothing)):
        tail = (bias, gates.clone(), None, first, None, h, None, None, last, options)
        assert forward(*arguments, *tail) == 0
    assert torch.equal(again.cpu(), got.cpu()) and torch.equal(from_nothing.cpu(), last_c.cpu())

    options, late = spread(dtype, 1, sizes)
    grad_output, d_h = from_host(dtype, *output.shape), from_host(dtype, B, H)
    d_cell = from_host(cell.dtype, B, H)
    want = torch.autograd.grad(
        (output, h_n, c_n), (x, c), (exact(grad_output), exact(d_h), exact(d_cell))
    )
    d_gates = poisoned(dtype, *gates.shape)
    backward = core("sequence_backward", dtype)
    kept, d_c_n = (grad_output, activations, new_cell, d_h), d_cell.clone()
    assert backward(*arguments, *kept, None, d_cell, None, None, d_gates, options) == 0
    scale = max(1.0, want[0].abs().max().item())
    for actual, expected in zip((d_gates, d_cell), want):
        torch.testing.assert_close(
            exact(actual), expected, rtol=T * tolerance, atol=T * tolerance * scale
        )
    check_d_cell(lambda *tail: backward(*arguments, *kept, *tail, options), d_c_n, d_gates)
    assert failure.item() == late.item() == 0


ROUNDED = ((9, 20, 500), (6, 9, 250), (5, 70, 700), (5, 20, 1000), (40, 9, 1024), (4, 9, 1500))
ROUNDED += ((150, 64, 256), (150, 256, 512), (150, 64, 1024), (6, 12, 300), (6, 70, 380))
ROUNDED += ((150, 130, 384), (6, 20, 600), (6, 40, 640), (150, 90, 640), (5, 260, 640))
ROUNDED += ((5, 200, 256), (33, 600, 256))


@pytest.mark.parametrize("packed", (False, True))
@pytest.mark.parametrize("sizes", ROUNDED, ids=str)
def test_spread_at_the_accuracy_of_tf32(sizes, packed):
    require_device("cuda:0")
    batch_sizes = ragged(*sizes[:2]).tolist() if packed else None
    arguments, weights, gates, cell = draw_spread(torch.float32, sizes, 0, batch_sizes)
    options, _ = spread(torch.float32, 0, sizes, tf32=1)
    x, c = exact(gates).requires_grad_(), exact(cell).requires_grad_()
    output, _, c_n = loop(weights, x, c, 0, torch.float32, batch_sizes)
    got, new_cell = (poisoned(torch.float32, *output.shape) for _ in range(2))
    activations, carried = gates.clone(), cell.clone()
    forward = core("sequence_forward", torch.float32)
    tail = (None, None, carried, got, new_cell, None, None, options)
    assert forward(*arguments, None, activations, *tail) == 0

    options, _ = spread(torch.float32, 1, sizes, tf32=1)
    grad_output, d_cell = (from_host(torch.float32, *v.shape) for v in (output, cell))
    want = torch.autograd.grad((output, c_n), (x, c), (exact(grad_output), exact(d_cell)))
    d_gates = poisoned(torch.float32, *gates.shape)
    tail = (grad_output, activations, new_cell, None, None, d_cell, None, None, d_gates, options)
    assert core("sequence_backward", torch.float32)(*arguments, *tail) == 0
    for actual, expected in ((got, output), (carried, c_n), (d_gates, want[0]), (d_cell, want[1])):
        error = (exact(actual) - expected.detach()).norm() / expected.detach().norm()
        assert 1e-6 < error < 2**-9  # half a unit of its last place is 2^-11


@pytest.mark.parametrize("tf32", (0, 1))
@pytest.mark.parametrize("state_size", (256, 1024))
def test_a_spread_step_with_nan_stays_in_its_row(dtype, state_size, tf32):
    """The exchange says "nothing yet" by a NaN of its own kind."""
    if tf32 and dtype != torch.float32:
        pytest.skip("TF32 is a kind of float32")
    sizes = (6, 9, state_size)
    arguments, _, gates, cell = draw_spread(dtype, sizes)
    options, failure = spread(dtype, 0, sizes, tf32=tf32)
    gates[1, 3, 10:12] = float("nan")
    gates[2, 4, 300] = float("inf")
    got, new_cell = poisoned(dtype, *sizes), poisoned(dtype, *sizes)
    forward = core("sequence_forward", dtype)
    tail = (None, None, cell, got, new_cell, None, None, options)
    assert forward(*arguments, None, gates, *tail) == 0
    is_nan = exact(got).isnan()
    assert is_nan[1, 3, 10:12].all() and is_nan[2:, 3].all()
    is_nan[:, 3] = False
    assert not is_nan.any()

    options, late = spread(dtype, 1, sizes, tf32=tf32)
    gates = torch.nan_to_num(gates.cpu(), 0.5).cuda()
    new_cell = torch.nan_to_num(new_cell.cpu(), 0.5).cuda()
    grad_output = from_host(dtype, *sizes)
    grad_output[4, 2, 20:22] = float("nan")
    d_gates = poisoned(dtype, 6, 9, 3 * state_size)
    d_cell = from_host(compute_type(dtype), 9, state_size)
    tail = (grad_output, gates, new_cell, None, None, d_cell, None, None, d_gates, options)
    assert core("sequence_backward", dtype)(*arguments, *tail) == 0
    is_nan = exact(d_gates).isnan()
    assert is_nan[:4, 2].all() and not is_nan[5].any()
    is_nan[:, 2] = False
    assert not is_nan.any()
    assert failure.item() == late.item() == 0


@pytest.mark.parametrize("tf32", (0, 1))
@pytest.mark.parametrize("sizes", ((200, 16, 512), (200, 64, 1024)), ids=str)
def test_a_block_that_waits_in_vain_says_so(dtype, sizes, tf32):
    """No hang: the flag, NaN from there on, and a GPU that works on.

    With this patience a read in vain is enough, and of so many some are.
    """
    if tf32 and dtype != torch.float32:
        pytest.skip("TF32 is a kind of float32")
    T, B, H = sizes
    arguments, _, gates, cell = draw_spread(dtype, sizes)
    options, failure = spread(dtype, 0, sizes, patience=1, tf32=tf32)
    got, new_cell = from_host(dtype, *sizes), from_host(dtype, *sizes)
    forward = core("sequence_forward", dtype)
    carried, last, c_n = cell.clone(), from_host(dtype, B, H), from_host(dtype, B, H)
    tail = (carried, got, new_cell, last, c_n, options)
    assert forward(*arguments, None, gates.clone(), None, None, *tail) == 0
    assert failure.item() == 1 and exact(last).isnan().any() and exact(c_n).isnan().any()
    assert exact(got)[-1].isnan().all() and exact(new_cell)[-1].isnan().all()
    assert exact(carried).isnan().any()

    options, failure = spread(dtype, 1, sizes, patience=1, tf32=tf32)
    d_gates, d_cell = from_host(dtype, T, B, 3 * H), from_host(cell.dtype, B, H)
    tail = (None, gates, new_cell, None, None, d_cell, None, None, d_gates, options)
    assert core("sequence_backward", dtype)(*arguments, *tail) == 0
    assert failure.item() == 1 and exact(d_gates)[0].isnan().all() and exact(d_cell).isnan().any()


def test_statuses_of_a_spread_launch(dtype):
    sizes = (6, 9, 256)
    arguments, _, gates, cell = draw_spread(dtype, sizes)
    (options, _), output = spread(dtype, 0, sizes), poisoned(dtype, *sizes)
    forward = core("sequence_forward", dtype)
    tail = (None, cell, output, None, None, None)
    assert forward(*arguments, None, gates, output, *tail, options) == -10
    rest = (None, gates, None, *tail)
    assert forward(*arguments, *rest, None) == (-2 if dtype == torch.float64 else -3)
    options.workspace = None
    assert forward(*arguments, *rest, options) == -17

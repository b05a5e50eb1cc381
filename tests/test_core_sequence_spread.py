"""Sequences that spread over a Hopper GPU, through the core's C ABI."""

import pytest
import torch
from conftest import require_device
from core_abi import CTYPES, Options, Plan, core, exact, from_host, poisoned
from test_core_sequence import GRID, HALF


@pytest.fixture(params=[dtype for dtype in CTYPES if dtype != torch.float64], ids=str)
def dtype(request):
    require_device("cuda:0")
    return request.param


# (steps, batch_size, state_size): one group of rows a block and several, blocks of 16 units and of
# 32, padded units and rows, more steps than the exchange has slots.
SPREAD = ((6, 3, 130), (4, 17, 256), (75, 64, 256), (5, 16, 512), (5, 70, 512), (4, 9, 770))
SPREAD += ((4, 16, 1024), (5, 64, 1022), (4, 140, 1024), (75, 140, 512))


def spread(dtype, way, sizes, patience=0, tf32=0):
    """(options, failure) of a launch that spreads over the GPU; skips where there is none."""
    plan = Plan()
    assert core("sequence_plan", dtype)(way, tf32, *sizes, plan) == 0
    if plan.path != GRID:
        pytest.skip(f"{torch.cuda.get_device_name()} has no kernel that spreads {sizes}")
    workspace = torch.empty(plan.workspace, dtype=torch.uint8, device="cuda")
    failure = torch.zeros(1, dtype=torch.int32).cuda()
    options = Options(tf32, workspace.data_ptr(), failure.data_ptr(), patience)
    options.keep = workspace  # as long as the options
    return options, failure


def draw_spread(dtype, sizes, reverse=0):
    T, B, H = sizes
    weights = (torch.randn(3 * H, H + 2, dtype=torch.float64) / H**0.5).to(dtype)
    gates, cell = from_host(dtype, T, B, 3 * H), from_host(torch.float32, B, H)
    return (T, B, H, weights.cuda(), H + 2, reverse), weights[:, :H].double(), gates, cell


def loop(weights, gates, cell, reverse, dtype):
    """The same in float64, with h rounded in each step: the first step's gates hold its product."""
    h, outputs = None, []
    for x in gates.flip(0) if reverse else gates:
        i, o, e = (x if h is None else x + h @ weights.t()).chunk(3, 1)
        cell = cell + torch.nn.functional.elu(e) * i.sigmoid()
        h = cell.tanh() * o.sigmoid()
        h = h + (h.to(dtype).double() - h).detach()
        outputs.append(h)
    return torch.stack(outputs[::-1] if reverse else outputs), cell


@pytest.mark.parametrize("reverse", (0, 1))
@pytest.mark.parametrize("sizes", SPREAD, ids=str)
def test_spread_forward_and_backward(dtype, sizes, reverse):
    arguments, weights, gates, cell = draw_spread(dtype, sizes, reverse)
    options, failure = spread(dtype, 0, sizes)
    T, B, H = sizes
    x, c = exact(gates).requires_grad_(), exact(cell).requires_grad_()
    output, c_n = loop(weights, x, c, reverse, dtype)

    tolerance = HALF.get(dtype, 1e-5)
    new_cell, got = poisoned(dtype, T, B, H), poisoned(dtype, T, B, H)
    activations, carried = gates.clone(), cell.clone()
    forward = core("sequence_forward", dtype)
    assert forward(*arguments, activations, None, carried, got, new_cell, options) == 0
    torch.testing.assert_close(exact(got), output.detach(), rtol=tolerance, atol=tolerance)
    torch.testing.assert_close(exact(carried), c_n.detach(), rtol=tolerance, atol=T * tolerance)
    again, carried = poisoned(dtype, T, B, H), cell.clone()
    assert forward(*arguments, gates.clone(), None, carried, again, None, options) == 0
    assert torch.equal(again.cpu(), got.cpu())

    options, late = spread(dtype, 1, sizes)
    grad_output, d_h = from_host(dtype, T, B, H), from_host(dtype, B, H)
    d_cell = from_host(torch.float32, B, H)
    h_n = output[0 if reverse else -1]
    want = torch.autograd.grad(
        (output, h_n, c_n), (x, c), (exact(grad_output), exact(d_h), exact(d_cell))
    )
    d_gates = poisoned(dtype, T, B, 3 * H)
    backward = core("sequence_backward", dtype)
    tail = (grad_output, activations, new_cell, d_h, d_cell, None, d_gates, options)
    assert backward(*arguments, *tail) == 0
    scale = max(1.0, want[0].abs().max().item())
    for actual, expected in zip((d_gates, d_cell), want):
        torch.testing.assert_close(
            exact(actual), expected, rtol=T * tolerance, atol=T * tolerance * scale
        )
    assert failure.item() == late.item() == 0


@pytest.mark.parametrize("sizes", ((9, 20, 500), (6, 9, 250), (5, 70, 700), (5, 20, 1000)), ids=str)
def test_spread_at_the_accuracy_of_tf32(sizes):
    require_device("cuda:0")
    T, B, H = sizes
    arguments, weights, gates, cell = draw_spread(torch.float32, sizes)
    options, _ = spread(torch.float32, 0, sizes, tf32=1)
    x, c = exact(gates).requires_grad_(), exact(cell).requires_grad_()
    output, c_n = loop(weights, x, c, 0, torch.float32)
    got, new_cell = poisoned(torch.float32, *sizes), poisoned(torch.float32, *sizes)
    activations, carried = gates.clone(), cell.clone()
    forward = core("sequence_forward", torch.float32)
    assert forward(*arguments, activations, None, carried, got, new_cell, options) == 0

    options, _ = spread(torch.float32, 1, sizes, tf32=1)
    grad_output, d_cell = from_host(torch.float32, *sizes), from_host(torch.float32, B, H)
    want = torch.autograd.grad((output, c_n), (x, c), (exact(grad_output), exact(d_cell)))
    d_gates = poisoned(torch.float32, T, B, 3 * H)
    tail = (grad_output, activations, new_cell, None, d_cell, None, d_gates, options)
    assert core("sequence_backward", torch.float32)(*arguments, *tail) == 0
    for actual, expected in ((got, output), (carried, c_n), (d_gates, want[0]), (d_cell, want[1])):
        error = (exact(actual) - expected.detach()).norm() / expected.detach().norm()
        assert 1e-6 < error < 2**-9  # half a unit of its last place is 2^-11


def test_a_spread_step_with_nan_stays_in_its_row(dtype):
    """The exchange says "nothing yet" by a NaN of its own kind."""
    sizes = (6, 9, 256)
    arguments, _, gates, cell = draw_spread(dtype, sizes)
    options, failure = spread(dtype, 0, sizes)
    gates[1, 3, 10:12] = float("nan")
    gates[2, 4, 300] = float("inf")
    got, new_cell = poisoned(dtype, *sizes), poisoned(dtype, *sizes)
    forward = core("sequence_forward", dtype)
    assert forward(*arguments, gates, None, cell, got, new_cell, options) == 0
    is_nan = exact(got).isnan()
    assert is_nan[1, 3, 10:12].all() and is_nan[2:, 3].all()
    is_nan[:, 3] = False
    assert not is_nan.any()

    options, late = spread(dtype, 1, sizes)
    gates = torch.nan_to_num(gates, 0.5)
    new_cell = torch.nan_to_num(new_cell, 0.5)
    grad_output = from_host(dtype, *sizes)
    grad_output[4, 2, 20:22] = float("nan")
    d_gates = poisoned(dtype, 6, 9, 768)
    d_cell = from_host(torch.float32, 9, 256)
    tail = (grad_output, gates, new_cell, None, d_cell, None, d_gates, options)
    assert core("sequence_backward", dtype)(*arguments, *tail) == 0
    is_nan = exact(d_gates).isnan()
    assert is_nan[:4, 2].all() and not is_nan[5].any()
    is_nan[:, 2] = False
    assert not is_nan.any()
    assert failure.item() == late.item() == 0


def test_a_block_that_waits_in_vain_says_so(dtype):
    """No hang: the flag, NaN from there on, and a GPU that works on."""
    sizes = (40, 16, 512)
    arguments, _, gates, cell = draw_spread(dtype, sizes)
    options, failure = spread(dtype, 0, sizes, patience=1)
    got, new_cell = from_host(dtype, *sizes), from_host(dtype, *sizes)
    forward = core("sequence_forward", dtype)
    carried = cell.clone()
    assert forward(*arguments, gates.clone(), None, carried, got, new_cell, options) == 0
    assert failure.item() == 1
    assert exact(got)[-1].isnan().all() and exact(new_cell)[-1].isnan().all()
    assert exact(carried).isnan().any()

    options, failure = spread(dtype, 1, sizes, patience=1)
    d_gates, d_cell = from_host(dtype, 40, 16, 3 * 512), from_host(torch.float32, 16, 512)
    tail = (None, gates, new_cell, None, d_cell, None, d_gates, options)
    assert core("sequence_backward", dtype)(*arguments, *tail) == 0
    assert failure.item() == 1
    assert exact(d_gates)[0].isnan().all() and exact(d_cell).isnan().any()


def test_statuses_of_a_spread_launch(dtype):
    sizes = (6, 9, 256)
    arguments, _, gates, cell = draw_spread(dtype, sizes)
    options, _ = spread(dtype, 0, sizes)
    output = poisoned(dtype, *sizes)
    forward = core("sequence_forward", dtype)
    assert forward(*arguments, gates, output, cell, output, None, options) == -8
    assert forward(*arguments, gates, None, cell, output, None, None) == -8
    options.workspace = None
    assert forward(*arguments, gates, None, cell, output, None, options) == -12

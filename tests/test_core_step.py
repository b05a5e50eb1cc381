"""One step of a sequence through the core's C ABI, on host and device memory."""

import pytest
import torch
from conftest import require_device
from core_abi import CTYPES, TOLERANCES, core, exact, from_host, poisoned

B, H = 7, 33
NAMES = ("new_h", "cell", "input_gate", "output_gate", "candidate_cell", "new_cell")


@pytest.fixture(params=[(d, t) for d in ("cpu", "cuda") for t in CTYPES], ids=str)
def place(request):
    device, dtype = request.param
    if device == "cuda":
        require_device("cuda:0")
    return device, dtype


def compute(dtype):
    return torch.float64 if dtype == torch.float64 else torch.float32


def masks(device, used):
    return [(torch.rand(B, H) < 0.4).to(device) if used else None for _ in range(2)]


def step(sums, cell, old_h, keep_h, keep_cell):
    """The definition, in float64 -> new_h, cell, the three activations, new_cell."""
    a_input, a_output, a_cell = sums.chunk(3, 1)
    activations = a_input.sigmoid(), a_output.sigmoid(), torch.nn.functional.elu(a_cell)
    new_cell = cell + activations[2] * activations[0]
    new_h = new_cell.tanh() * activations[1]
    if keep_h is not None:
        new_h = torch.where(keep_h.cpu(), old_h, new_h)
    zoned_cell = new_cell if keep_cell is None else torch.where(keep_cell.cpu(), cell, new_cell)
    return (new_h, zoned_cell, *activations, new_cell)


def check(got, want, dtype):
    for name, actual, expected in zip(NAMES, got, want):
        torch.testing.assert_close(
            exact(actual),
            expected.detach(),
            **TOLERANCES[dtype],
            msg=lambda text, name=name: f"{name}: {text}",
        )


def launch_forward(place, fused, gates, keeps, old_h, cell, state_h, new_cell, weights):
    device, dtype = place
    new_h = poisoned(dtype, B, H, device=device)
    if fused:
        call = core("step_fused_forward", dtype)
        outputs = (new_h, new_cell)
        status = call(B, H, weights, weights.stride(0), gates, *keeps, old_h, cell, *outputs)
    else:
        call = core("step_forward", dtype, device)
        status = call(B, H, gates, *keeps, old_h, cell, new_h, state_h, new_cell)
    assert status == 0
    return new_h


@pytest.mark.parametrize("zoneout", (False, True))
@pytest.mark.parametrize("fused", (False, True))
def test_forward_and_backward(place, fused, zoneout):
    device, dtype = place
    if fused and device == "cpu":
        pytest.skip("a call costs nothing there")
    keeps = masks(device, zoneout)
    gates, old_h = (from_host(dtype, B, n, device=device) for n in (3 * H, H))
    cell = from_host(compute(dtype), B, H, device=device)
    # The first H of more columns, as the weights have them.
    all_weights = from_host(dtype, 3 * H, H + 5, device="cpu") / 4
    weights, exact_weights = all_weights.to(device)[:, :H], exact(all_weights)[:, :H]
    product = exact(old_h) @ exact_weights.t() if fused else 0
    sums = (exact(gates) + product).requires_grad_()
    before = exact(cell).requires_grad_()
    old = exact(old_h).requires_grad_()
    want = step(sums, before, old, *keeps)

    # Nothing kept: the gates are only read.
    copy, state_h = gates.clone(), poisoned(dtype, B, H, device=device)
    carried = cell.clone()
    new_h = launch_forward(place, fused, copy, keeps, old_h, carried, None, None, weights)
    check((new_h, carried), want, dtype)
    assert torch.equal(copy.cpu(), gates.cpu())

    # Kept for backward; the packed state is old_h and its own successor.
    activations, new_cell = gates.clone(), poisoned(dtype, B, H, device=device)
    state_h.copy_(old_h)
    source = old_h if fused else state_h
    carried = cell.clone()
    new_h = launch_forward(
        place, fused, activations, keeps, source, carried, state_h, new_cell, weights
    )
    check((new_h, carried, *exact(activations).chunk(3, 1), new_cell), want, dtype)
    assert fused or torch.equal(state_h.cpu(), new_h.cpu())

    d_next = from_host(dtype, B, 3 * H, device=device)
    for has_output, has_later in ((True, True), (True, False), (False, True)):
        grad_output = from_host(dtype, B, H, device=device) if has_output else None
        later = from_host(dtype, B, H, device=device) if has_later or zoneout else None
        d_cell = from_host(compute(dtype), B, H, device=device)
        grad_h = sum(exact(g) for g in (grad_output, later) if g is not None)
        if fused:
            grad_h = grad_h + exact(d_next) @ exact_weights
        expected = torch.autograd.grad(
            want[:2],
            (sums, before, old),
            (grad_h, exact(d_cell)),
            retain_graph=True,
            allow_unused=True,
        )
        d_gates = poisoned(dtype, B, 3 * H, device=device)
        tail = (grad_output, activations, new_cell, *keeps, later, d_cell, d_gates)
        if fused:
            transposed = all_weights[:, :H].t().contiguous().to(device)
            status = core("step_fused_backward", dtype)(B, H, transposed, d_next, *tail)
        else:
            status = core("step_backward", dtype, device)(B, H, *tail)
        assert status == 0
        # The activations that backward reads are rounded: 1 - gate is off by that much.
        tolerance = dict(TOLERANCES[dtype])
        tolerance["atol"] *= 8
        torch.testing.assert_close(exact(d_gates), expected[0], **tolerance)
        torch.testing.assert_close(exact(d_cell), expected[1], **tolerance)
        if zoneout:
            torch.testing.assert_close(exact(later), expected[2], **tolerance)


def test_nothing_flows_through_an_unused_h(place):
    """Not even NaN: without grad_output and d_h the cell's gradient is all there is."""
    device, dtype = place
    # the sigmoid in float64: old torch has none for half types on a CPU
    activations = from_host(torch.float64, B, 3 * H, device="cpu").sigmoid().to(dtype).to(device)
    new_cell, d_gates = (poisoned(dtype, B, n, device=device) for n in (H, 3 * H))
    d_cell = from_host(compute(dtype), B, H, device=device)
    before = d_cell.clone()
    nothing = (None,) * 3
    backward = core("step_backward", dtype, device)
    assert backward(B, H, None, activations, new_cell, *nothing, d_cell, d_gates) == 0
    assert torch.equal(d_cell.cpu(), before.cpu())
    assert exact(d_gates)[:, H : 2 * H].eq(0).all()
    assert exact(d_gates).isfinite().all()


def test_statuses(place):
    device, dtype = place
    forward, backward = (core(f"step_{way}", dtype, device) for way in ("forward", "backward"))
    some = from_host(torch.float64, 2, 24, device=device)
    calls = [(forward, 8, {0: -3, 3: -6, 4: -7, 5: -8}), (backward, 8, {})]
    calls[1][2].update({1: -4, 2: -5, 5: -8, 6: -9, 7: -10})
    for call, count, wrong in calls:
        assert call(-1, 4, *[some] * count) == -1
        assert call(2, -1, *[some] * count) == -2
        for position, status in wrong.items():
            assert call(2, 4, *[None if i == position else some for i in range(count)]) == status
        for sizes in ((0, 4), (2, 0)):
            assert call(*sizes, *[None] * count) == 0
    if device == "cpu":
        return
    fused = core("step_fused_forward", dtype)
    for position, status in {0: -3, 2: -5, 5: -8, 6: -9, 7: -10}.items():
        arguments = [None if i == position else some for i in range(9)]
        arguments[1] = 4
        assert fused(2, 4, *arguments) == status
    for stride in (3, 1 << 62, (1 << 63) - 1):
        assert fused(2, 4, some, stride, *[some] * 7) == -4
    fused = core("step_fused_backward", dtype)
    for position, status in {0: -3, 1: -4, 3: -6, 4: -7, 7: -10, 8: -11, 9: -12}.items():
        assert fused(2, 4, *[None if i == position else some for i in range(10)]) == status
    assert fused(1, (1 << 31) - 1, *[some] * 10) == -2
    torch.cuda.synchronize()

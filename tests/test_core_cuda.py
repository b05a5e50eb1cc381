"""The core's CUDA functions through their C ABI: raw device pointers in, statuses out."""

import itertools

import pytest
import torch
from conftest import require_device
from core_abi import CTYPES, TOLERANCES, core, exact, from_host, poisoned

from lltm_decoupled import reference

# batch_size, state_size, input_features
BAD_SIZES = (((-1, 4, 4), -1), ((2, -1, 4), -2), ((2, 4, -1), -3), ((2, 4, 2**62), -3))
BAD_SIZES += (((1, 1, 2**63 - 1), -3), ((0, 4, 2**63 - 1), -3))
FORWARD_OUTPUTS = ("new_h", "new_cell", "input_gate", "output_gate", "candidate_cell")


@pytest.fixture(params=CTYPES, ids=str)
def dtype(request):
    require_device("cuda:0")
    return request.param


@pytest.mark.parametrize("has_bias", (True, False))
@pytest.mark.parametrize("saves_gates", (True, False))
def test_forward_and_backward(dtype, has_bias, saves_gates):
    B, H = 7, 33
    gates, old_cell = from_host(dtype, B, 3 * H), from_host(dtype, B, H)
    bias = from_host(dtype, 3 * H) if has_bias else None
    outputs = [poisoned(dtype, B, H) for _ in FORWARD_OUTPUTS]
    passed = outputs if saves_gates else outputs[:2] + [None] * 3
    assert core("cell_forward", dtype)(B, H, gates, bias, old_cell, *passed) == 0

    sums = exact(gates) + (exact(bias) if has_bias else 0)
    sums.requires_grad_()
    # The reference cell with the sums as its input and weights that pass them through.
    weights = torch.cat([torch.zeros(3 * H, H), torch.eye(3 * H)], 1).double()
    cell = exact(old_cell).requires_grad_()
    new_h, new_cell = reference.lltm_cell(sums, weights, None, torch.zeros(B, H).double(), cell)
    input_gate, output_gate, candidate = sums.chunk(3, 1)
    expected = (new_h, new_cell, input_gate.sigmoid(), output_gate.sigmoid())
    expected += (torch.nn.functional.elu(candidate),)
    tolerance = TOLERANCES[dtype]
    for got, want in list(zip(outputs, expected))[: 5 if saves_gates else 2]:
        torch.testing.assert_close(exact(got), want.detach(), **tolerance)

    grad_h, grad_cell = from_host(dtype, B, H), from_host(dtype, B, H)
    d_gates, d_old_cell = poisoned(dtype, B, 3 * H), poisoned(dtype, B, H)
    for grads in ((grad_h, grad_cell), (grad_h, None), (None, grad_cell)):
        status = core("cell_backward", dtype)(
            B, H, *grads, gates, bias, outputs[1], d_gates, d_old_cell
        )
        assert status == 0
        used = [(o, exact(g)) for o, g in zip((new_h, new_cell), grads) if g is not None]
        used_outputs, used_grads = zip(*used)
        want = torch.autograd.grad(used_outputs, (sums, cell), used_grads, retain_graph=True)
        torch.testing.assert_close(exact(d_gates), want[0], **tolerance)
        torch.testing.assert_close(exact(d_old_cell), want[1], **tolerance)


def test_statuses(dtype):
    forward, backward = core("cell_forward", dtype), core("cell_backward", dtype)
    some = from_host(dtype, 2, 12)
    assert forward(-1, 4, *[some] * 8) == -1
    assert forward(2, -1, *[some] * 8) == -2
    assert forward(2**40, 2**40, *[some] * 8) == -1  # the byte count would overflow
    for place, status in ((0, -3), (2, -5), (3, -6), (4, -7)):
        assert forward(2, 4, *[None if i == place else some for i in range(8)]) == status
    for place, status in ((2, -5), (4, -7), (5, -8), (6, -9)):
        assert backward(2, 4, *[None if i == place else some for i in range(7)]) == status
    for sizes in ((0, 4), (2, 0)):
        assert forward(*sizes, *[None] * 8) == 0
        assert backward(*sizes, *[None] * 7) == 0
    torch.cuda.synchronize()  # nothing was launched, and nothing is wrong


@pytest.mark.parametrize("has_bias", (True, False))
@pytest.mark.parametrize("sizes", ((5, 36, 12), (5, 33, 7), (1, 4, 0), (66, 257, 300)), ids=str)
def test_fused_forward(dtype, sizes, has_bias):
    """Sizes that one load of four columns fits and that none does; a row of more than one tile."""
    B, H, width = sizes
    input, old_h, old_cell = (from_host(dtype, B, n) for n in (width, H, H))
    weights = (
        (torch.randn(3 * H, H + width, dtype=torch.float64) / (H + width) ** 0.5).to(dtype).cuda()
    )
    bias = from_host(dtype, 3 * H) if has_bias else None
    new_h, new_cell, gates = (poisoned(dtype, B, n) for n in (H, H, 3 * H))
    outputs = (new_h, new_cell, gates)
    fused = core("cell_fused_forward", dtype)
    assert fused(B, H, width, input, weights, bias, old_h, old_cell, *outputs) == 0
    wide = [t if t is None else exact(t) for t in (input, weights, bias, old_h, old_cell)]
    expected = (*reference.lltm_cell(*wide), torch.cat([wide[3], wide[0]], 1) @ wide[1].t())
    for got, want in zip(outputs, expected):
        torch.testing.assert_close(exact(got), want, **TOLERANCES[dtype])
    again = (poisoned(dtype, B, H), poisoned(dtype, B, H))
    assert fused(B, H, width, input, weights, bias, old_h, old_cell, *again, None) == 0
    assert all(torch.equal(a.cpu(), b.cpu()) for a, b in zip(again, outputs))


def test_fused_statuses(dtype):
    fused, some = core("cell_fused_forward", dtype), from_host(dtype, 2, 24)
    for sizes, status in BAD_SIZES:
        assert fused(*sizes, *[some] * 8) == status
    for place, status in ((0, -4), (1, -5), (3, -7), (4, -8), (5, -9), (6, -10)):
        assert fused(2, 4, 4, *[None if i == place else some for i in range(8)]) == status
    assert fused(0, 4, 4, *[None] * 8) == 0
    torch.cuda.synchronize()


GRADIENTS = ("d_input", "d_weights", "d_bias", "d_old_h")
# Loads of four that fit and that do not; tiles that are not full; sums of several rounds; and with
# so many tiles that no threads share a sum over the batch.
PRODUCT_SIZES = ((16, 128, 32), (5, 36, 12), (5, 33, 7), (1, 4, 0), (66, 257, 300), (3, 1, 1))
PRODUCT_SIZES += ((9, 516, 508), (5, 515, 511))


def launch_gradients(dtype, sizes, d_gates, input, weights, old_h, without=()):
    """(status, {name: gradient}), of which those that are not wanted are None."""
    B, H, I = sizes  # noqa: E741
    shapes = ((B, I), (3 * H, H + I), (3 * H,), (B, H))
    wanted = {
        name: None if name in without else poisoned(dtype, *shape)
        for name, shape in zip(GRADIENTS, shapes)
    }
    function = core("gradient_products", dtype)
    return function(B, H, I, d_gates, input, weights, old_h, *wanted.values()), wanted


def draw_products(dtype, B, H, I):  # noqa: E741
    shapes = ((B, 3 * H), (B, I), (3 * H, H + I), (B, H))
    return [
        (torch.randn(*shape, dtype=torch.float64) / max(3 * H, B) ** 0.5).to(dtype).cuda()
        for shape in shapes
    ]


def exact_gradients(H, d_gates, input, weights, old_h):
    d, x, W = exact(d_gates), torch.cat([exact(old_h), exact(input)], 1), exact(weights)
    d_x = d @ W
    return dict(zip(GRADIENTS, (d_x[:, H:], d.t() @ x, d.sum(0), d_x[:, :H])))


@pytest.mark.parametrize("sizes", PRODUCT_SIZES, ids=str)
def test_gradient_products(dtype, sizes):
    operands = draw_products(dtype, *sizes)
    expected = exact_gradients(sizes[1], *operands)
    status, all_of_them = launch_gradients(dtype, sizes, *operands)
    assert status == 0
    for name, want in expected.items():
        torch.testing.assert_close(exact(all_of_them[name]), want, **TOLERANCES[dtype])
    for count in (1, 2, 3, 4):
        for without in itertools.combinations(GRADIENTS, count):
            status, some = launch_gradients(dtype, sizes, *operands, without)
            assert status == 0
            for name in set(GRADIENTS) - set(without):
                assert torch.equal(some[name].cpu(), all_of_them[name].cpu()), (name, without)


@pytest.mark.parametrize("sizes", [(3, 4, 8), (3, 5, 2)], ids=str)
@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_gradient_products_of_infinity_and_nan(dtype, sizes, bad):
    """They reach the sums that they are part of, and no others."""
    for place in range(4):
        operands = draw_products(dtype, *sizes)
        operands[place][-1, -1] = bad
        status, gradients = launch_gradients(dtype, sizes, *operands)
        assert status == 0
        for name, want in exact_gradients(sizes[1], *operands).items():
            assert torch.equal(exact(gradients[name]).isfinite(), want.isfinite()), (place, name)


def test_gradient_products_of_nothing(dtype):
    """An empty sum is zero, and what it is a sum of may be null."""
    nothing = (None,) * 4
    for sizes in ((0, 4, 3), (2, 0, 3), (0, 0, 0), (0, 4, 0)):
        status, gradients = launch_gradients(dtype, sizes, *nothing)
        assert status == 0
        assert all(not g.cpu().any() for g in gradients.values())


def test_gradient_products_statuses(dtype):
    function, some = core("gradient_products", dtype), from_host(dtype, 2, 24)
    for sizes, status in BAD_SIZES:
        assert function(*sizes, *[some] * 8) == status
    for place, status in ((0, -4), (1, -5), (2, -6), (3, -7)):
        assert function(2, 4, 4, *[None if i == place else some for i in range(8)]) == status
    torch.cuda.synchronize()

"""The host loops of the cell and of the step for every instruction set, against float64.

test_core_math.py and test_core_products.py have the exponentials and the products.
"""

import ctypes

import pytest
import torch
from core_abi import TOLERANCES, exact, from_host, poisoned
from core_tables import CELL, STEP, VARIANTS, host_function

B = 3
DTYPES = tuple(TOLERANCES)  # in the order of the tables


@pytest.fixture(params=VARIANTS)
def variant(request):
    return request.param


@pytest.fixture(params=DTYPES, ids=str)
def dtype(request):
    return request.param


def call(kind, structures, variant, dtype, way, state_size, **tensors):
    place = 4 * way + DTYPES.index(dtype)
    loop = host_function(kind, variant, place, structures[way])
    pointers = {name: tensor.data_ptr() for name, tensor in tensors.items() if tensor is not None}
    loop(ctypes.byref(structures[way](B, state_size, **pointers)))


def definition(sums, old_cell):
    """-> new_h, new_cell, input gate, output gate, candidate; in float64"""
    a_input, a_output, a_cell = sums.chunk(3, 1)
    gates = a_input.sigmoid(), a_output.sigmoid(), torch.nn.functional.elu(a_cell)
    new_cell = old_cell + gates[2] * gates[0]
    return (new_cell.tanh() * gates[1], new_cell, *gates)


def close(got, want, dtype, factor=1):
    tolerance = {name: factor * value for name, value in TOLERANCES[dtype].items()}
    torch.testing.assert_close(exact(got), want.detach(), **tolerance)


@pytest.mark.parametrize("state_size", [1, 7, 16, 67])
@pytest.mark.parametrize("has_bias", [False, True])
def test_cell(variant, dtype, has_bias, state_size):
    H = state_size

    def draw(*shape):
        return from_host(dtype, *shape, device="cpu")

    gates, old_cell = draw(B, 3 * H), draw(B, H)
    bias = draw(3 * H) if has_bias else None
    sums = (exact(gates) + (exact(bias) if has_bias else 0)).requires_grad_()
    before = exact(old_cell).requires_grad_()
    want = definition(sums, before)
    names = ("new_h", "new_cell", "input_gate", "output_gate", "candidate_cell")
    results = {name: poisoned(dtype, B, H, device="cpu") for name in names}
    inputs = {"gates": gates, "bias": bias}
    call("cell", CELL, variant, dtype, 0, H, **inputs, old_cell=old_cell, **results)
    for name, value in zip(names, want):
        close(results[name], value, dtype)

    new_cell = exact(results["new_cell"])
    for used in ((True, True), (True, False), (False, True)):
        grads = [draw(B, H) if use else None for use in used]
        flows = [torch.zeros(B, H).double() if g is None else exact(g) for g in grads]
        # with respect to the cell as it was rounded
        at = new_cell.detach().requires_grad_()
        (through_h,) = torch.autograd.grad(at.tanh() * want[3].detach(), at, flows[0])
        wanted = torch.autograd.grad(
            (at.detach().tanh() * definition(sums, before)[3], definition(sums, before)[1]),
            (sums, before),
            (flows[0], flows[1] + through_h),
        )
        d_gates, d_old_cell = (poisoned(dtype, B, n, device="cpu") for n in (3 * H, H))
        tensors = {"grad_h": grads[0], "grad_cell": grads[1], "new_cell": results["new_cell"]}
        outputs = {"d_gates": d_gates, "d_old_cell": d_old_cell}
        call("cell", CELL, variant, dtype, 1, H, **inputs, **tensors, **outputs)
        close(d_gates, wanted[0], dtype, 4)
        close(d_old_cell, wanted[1], dtype, 4)


@pytest.mark.parametrize("state_size", [1, 7, 16, 67])
def test_step(variant, dtype, state_size):
    H = state_size
    wide = torch.float64 if dtype == torch.float64 else torch.float32

    def draw(*shape):
        return from_host(dtype, *shape, device="cpu")

    gates, cell = draw(B, 3 * H), from_host(wide, B, H, device="cpu")
    # copies: the loop writes to both
    sums, before = (exact(t).clone().requires_grad_() for t in (gates, cell))
    want = definition(sums, before)
    new_h, state_h, new_cell = (poisoned(dtype, B, H, device="cpu") for _ in range(3))
    outputs = {"new_h": new_h, "state_h": state_h, "new_cell": new_cell}
    call("step", STEP, variant, dtype, 0, H, gates=gates, cell=cell, **outputs)
    for got, value in zip((new_h, new_cell, *gates.chunk(3, 1)), want):
        close(got, value, dtype)
    torch.testing.assert_close(cell.double(), want[1].detach(), **TOLERANCES[wide])
    assert torch.equal(state_h, new_h)

    for used in ((True, True), (True, False), (False, True)):
        grads = [draw(B, H) if use else None for use in used]
        d_cell = from_host(wide, B, H, device="cpu")
        flows = sum(exact(g) for g in grads if g is not None), exact(d_cell)
        wanted = torch.autograd.grad(want[:2], (sums, before), flows, retain_graph=True)
        d_gates = poisoned(dtype, B, 3 * H, device="cpu")
        tensors = {"grad_output": grads[0], "d_h": grads[1], "activations": gates}
        outputs = {"new_cell": new_cell, "d_cell": d_cell, "d_gates": d_gates}
        call("step", STEP, variant, dtype, 1, H, **tensors, **outputs)
        # the activations that backward reads are rounded: 1 - gate is off by that much
        close(d_gates, wanted[0], dtype, 8)
        close(d_cell, wanted[1], dtype, 8)

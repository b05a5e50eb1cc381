"""Under torch.autocast the cell follows the rules of nn.LSTMCell."""

import warnings

import pytest
import torch
from conftest import require_device
from helpers import assert_close, draw, leaves

from lltm_decoupled import LLTM, lltm_cell, reference

NARROW = (torch.float16, torch.bfloat16)


@pytest.fixture(params=("cpu", "cuda:0"))
def device(request):
    require_device(request.param)
    return request.param


@pytest.fixture(params=NARROW, ids=str)
def narrow(request, device):
    if device == "cpu":
        if not hasattr(torch, "autocast"):
            pytest.skip("this torch has no autocast on the CPU")
        try:
            with torch.autocast("cpu", dtype=request.param):
                torch.mm(torch.ones(2, 2), torch.ones(2, 2))
        except RuntimeError as error:
            pytest.skip(f"this torch has no CPU product in {request.param}: {error}")
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            with torch.autocast("cpu", dtype=request.param):
                if torch.mm(torch.ones(2, 2), torch.ones(2, 2)).dtype != request.param:
                    pytest.skip(f"this torch's autocast declines {request.param}: {caught}")
    return request.param


def autocast(device, narrow):
    return torch.autocast(torch.device(device).type, dtype=narrow)


class Target32:
    def __init__(self, device):
        self.device, self.dtype = device, torch.float32


def test_output_dtypes_are_those_of_lstm_cell(device, narrow):
    ours, theirs = (c(3, 4, device=device) for c in (LLTM, torch.nn.LSTMCell))
    for input_dtype in (torch.float32, narrow):
        for state_dtype in (None, torch.float32, narrow):
            input = torch.randn(5, 3, device=device, dtype=input_dtype)
            state = None
            if state_dtype is not None:
                state = tuple(torch.randn(5, 4, device=device, dtype=state_dtype) for _ in "hc")
            with autocast(device, narrow):
                got, want = ours(input, state), theirs(input, state)
            assert [t.dtype for t in got] == [t.dtype for t in want], (input_dtype, state_dtype)


def test_values_and_gradients(device, narrow):
    """As the reference in float64, to the narrow type's precision; gradients in float32."""
    inputs = leaves(draw(Target32(device)))
    with autocast(device, narrow):
        outputs = lltm_cell(*inputs)
    (outputs[0].float().sum() + 2 * outputs[1].float().sum()).backward()

    exact = leaves([t.detach().double().cpu() for t in inputs])
    expected = reference.lltm_cell(*exact)
    (expected[0].sum() + 2 * expected[1].sum()).backward()

    class Tolerance:
        rtol = atol = 1e-2 if narrow == torch.float16 else 6e-2

    for got, want in zip(outputs, expected):
        assert_close(got, want, Tolerance)
    for tensor, double in zip(inputs, exact):
        assert tensor.grad.dtype == torch.float32
        assert_close(tensor.grad, double.grad, Tolerance, terms=5)


def test_float64_stays(device, narrow):
    """Autocast leaves float64 alone, in PyTorch's own operators too."""
    inputs = [t.double() for t in draw(Target32(device))]
    with autocast(device, narrow):
        outputs = lltm_cell(*inputs)
    assert [t.dtype for t in outputs] == [torch.float64] * 2


def test_after_a_linear_layer_and_without_warnings(device, narrow):
    linear, cell = torch.nn.Linear(3, 3, device=device), LLTM(3, 4, device=device)
    with warnings.catch_warnings():
        warnings.simplefilter("error", FutureWarning)
        state = None
        for _ in range(3):
            with autocast(device, narrow):
                state = cell(linear(torch.randn(5, 3, device=device)), state)
        sum(part.float().sum() for part in state).backward()
    for parameter in (*linear.parameters(), *cell.parameters()):
        assert parameter.grad.dtype == torch.float32
        assert torch.isfinite(parameter.grad).all()


def test_errors_keep_their_words(device, narrow):
    inputs = draw(Target32(device))
    inputs[3] = torch.randn(5, 9, device=device)
    with autocast(device, narrow), pytest.raises(RuntimeError, match="old_h"):
        lltm_cell(*inputs)


def test_grad_scaler_trains(device):
    if device == "cpu":
        pytest.skip("loss scaling is for CUDA")
    cell = LLTM(3, 4, device=device)
    optimizer = torch.optim.SGD(cell.parameters(), 0.1)
    make = getattr(getattr(torch, "amp", None), "GradScaler", None)
    scaler = make("cuda") if make else torch.cuda.amp.GradScaler()
    before = [p.detach().clone() for p in cell.parameters()]
    for _ in range(5):
        optimizer.zero_grad()
        with autocast(device, torch.float16):
            h, c = cell(torch.randn(5, 3, device=device))
            loss = (h.float() ** 2).mean() + c.float().mean()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
    assert all((p != q).any() for p, q in zip(cell.parameters(), before))


@pytest.mark.parametrize("name", ["input", "old_h"])
def test_errors_name_the_dtypes_that_were_given(device, narrow, name):
    shapes = {"input": (5, 3), "weights": (12, 7), "bias": (12,), "old_h": (5, 4)}
    tensors = {n: torch.ones(s, device=device) for n, s in {**shapes, "old_cell": (5, 4)}.items()}
    tensors[name] = tensors[name].double()
    with autocast(device, narrow), pytest.raises(RuntimeError) as raised:
        lltm_cell(**tensors)
    assert "torch.float32" in str(raised.value) and "torch.float64" in str(raised.value)
    assert str(narrow) not in str(raised.value)

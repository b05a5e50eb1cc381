"""What a new operator has to pass. Run it after the build: python -m pytest test_swiglu.py"""

import re
from pathlib import Path

import pytest
import torch
from swiglu import formula, swiglu

CORE = Path(__file__).parent / "core"
DEVICES = ["cpu"] + (["cuda"] if torch.cuda.is_available() else [])
OP = torch.ops.swiglu.swiglu
SHAPES = [(5, 6), (2, 3, 8), (4,), (0, 6), (3, 0), (70001, 2)]


def draw(shape, device="cpu", dtype=torch.float64):
    return torch.randn(shape, device=device, dtype=dtype, requires_grad=True)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("shape", SHAPES)
def test_equals_the_formula(shape, dtype, device):
    """Against the formula in float64 on the CPU, forward and backward."""
    input = draw(shape, device, dtype)
    exact = input.detach().cpu().double().requires_grad_()
    output, expected = swiglu(input), formula(exact)
    grad = torch.randn(expected.shape, dtype=torch.float64)
    output.backward(grad.to(output))
    expected.backward(grad)
    for actual, value in ((output, expected), (input.grad, exact.grad)):
        torch.testing.assert_close(actual.cpu(), value.to(dtype))


@pytest.mark.parametrize("device", DEVICES)
def test_any_strides(device):
    input = draw((6, 5), device)
    for view in (input.t(), input.t()[:, :4], input[0].expand(3, 5)[:, 1:]):
        torch.testing.assert_close(swiglu(view), formula(view))


@pytest.mark.parametrize("device", DEVICES)
def test_gradcheck(device):
    for shape in ((3, 4), (2, 2, 2)):
        assert torch.autograd.gradcheck(swiglu, draw(shape, device))
        assert torch.autograd.gradgradcheck(swiglu, draw(shape, device))


@pytest.mark.parametrize("device", DEVICES)
def test_a_hook_runs_once(device):
    input, seen = draw((3, 4), device), []
    input.register_hook(seen.append)
    torch.autograd.grad(swiglu(input).sum(), input, create_graph=True)
    assert len(seen) == 1


@pytest.mark.parametrize("device", DEVICES)
def test_opcheck(device):
    """Schema, autograd registration, shapes for tracing, and compiled against eager."""
    for shape in ((3, 4), (2, 3, 8)):
        torch.library.opcheck(OP, (draw(shape, device),))
        input = draw(shape, device).detach()
        torch.library.opcheck(OP, (input,))
        torch.library.opcheck(torch.ops.swiglu.swiglu_backward, (formula(input), input))


@pytest.mark.parametrize("device", DEVICES)
def test_compile(device):
    compiled = torch.compile(swiglu, fullgraph=True, backend="aot_eager", dynamic=True)
    for rows in (3, 5):
        input = draw((rows, 4), device)
        torch.testing.assert_close(compiled(input), formula(input))


def test_mistakes():
    for input, message in (
        (torch.randn(3, 5), "expected input of"),
        (torch.randn(()), "expected input of"),
        (torch.ones(3, 4, dtype=torch.int32), "float32 or float64"),
    ):
        with pytest.raises(RuntimeError, match=message):
            swiglu(input)


def test_the_core_knows_no_framework():
    allowed = {"math.h", "stdint.h", "cuda_runtime.h", "swiglu.h", "swiglu_math.h"}
    for path in CORE.iterdir():
        includes = re.findall(r'#\s*include\s*[<"]([^>"]+)', path.read_text(encoding="utf-8"))
        assert set(includes) <= allowed, path.name

"""Compute a cell and a sequence on each of this machine's devices, and compare with the formula.

The formula is `lltm_decoupled.reference`, in float64 on the CPU and on the same numbers. Results
and gradients are compared. The exit code is 1 if something is wrong.
"""

import time

import torch

import lltm_decoupled

from . import _native, reference

# of the largest number in a result or gradient
ALLOWED = {
    torch.float64: 1e-12,
    torch.float32: 1e-4,
    torch.float16: 2e-2,
    torch.bfloat16: 1e-1,
}
STEPS, BATCH, FEATURES = 12, 16, 48
STATES = (24, 128, 384)  # each has its own kernels


def add_arguments(parser):
    """Add this command's options: none."""


def run(args):
    """Print one line for each device and dtype; return 0, or 1 if one is wrong."""
    devices = ["cpu"]
    if torch.cuda.is_available() and lltm_decoupled.build_info()["cuda"]:
        devices += [f"cuda:{index}" for index in range(torch.cuda.device_count())]
    elif torch.cuda.is_available():
        print("this build has no CUDA kernels: no GPU is checked")
    wrong = 0
    for device in devices:
        for dtype in ALLOWED:
            start = time.time()
            verdict = check(device, dtype)
            wrong += verdict.startswith("WRONG")
            name = str(dtype).replace("torch.", "")
            print(f"{device:8} {name:9} {verdict} ({time.time() - start:.1f} s)")
    return 1 if wrong else 0


def check(device, dtype):
    """Return "right", or "WRONG: ...", or "not here: ..." where this torch does not compute it."""
    try:
        one = torch.ones(1, 1, dtype=dtype, device=device)
        one.mm(one)
        if _native.loaded() is None:  # then the rest is torch's too
            reference.lltm_cell(one, torch.cat([one] * 6).view(3, 2), None, one, one)
    except RuntimeError as error:
        return f"not here: {error}"
    for state_size in STATES:
        for name, shape in (("lltm_cell", ()), ("lltm_sequence", (STEPS,))):
            worst = compare(name, shape, state_size, device, dtype)
            if not worst <= ALLOWED[dtype]:
                return f"WRONG: {name} with a state of {state_size} is off by {worst:.1e}"
    return "right"


def compare(name, leading, state_size, device, dtype):
    """The largest difference of any output or gradient, as a part of its largest number."""
    generator = torch.Generator().manual_seed(0)
    shapes = [
        (*leading, BATCH, FEATURES),
        (3 * state_size, state_size + FEATURES),
        (3 * state_size,),
        (BATCH, state_size),
        (BATCH, state_size),
    ]
    drawn = [torch.randn(shape, generator=generator, dtype=torch.float64) for shape in shapes]
    drawn[1] /= shapes[1][1] ** 0.5
    drawn = [tensor.to(dtype) for tensor in drawn]
    got = evaluate(getattr(lltm_decoupled, name), [tensor.to(device) for tensor in drawn])
    expected = evaluate(getattr(reference, name), [tensor.double() for tensor in drawn])
    return max(
        ((a.double().cpu() - b).abs().max() / b.abs().max()).item() for a, b in zip(got, expected)
    )


def evaluate(function, tensors):
    """Its outputs, and the gradients of their sum."""
    tensors = [tensor.detach().requires_grad_() for tensor in tensors]
    outputs = function(*tensors)
    gradients = torch.autograd.grad(sum(output.sum() for output in outputs), tensors)
    return [*(output.detach() for output in outputs), *gradients]

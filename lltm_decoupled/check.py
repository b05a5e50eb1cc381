"""Compute a cell and a sequence on each of this machine's devices, and compare with the formula.

The formula is `lltm_decoupled.reference`, in float64 on the CPU and on the same numbers. Results
and gradients are compared. The exit code is 1 if something is wrong.
"""

import json
import os
import sys
import time

import torch

import lltm_decoupled

from . import _native, reference
from .demo.options import pick_device

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
    """Add this command's options."""
    several = "; may be given several times (default: all)"
    devices = "cpu, cuda, cuda:1, ..." + several
    parser.add_argument("--device", action="append", metavar="NAME", help=devices)
    dtypes = "one of %(choices)s" + several
    choices = [_name(dtype) for dtype in ALLOWED]
    parser.add_argument("--dtype", action="append", metavar="NAME", choices=choices, help=dtypes)
    parser.add_argument("--json", action="store_true", help="print one JSON object instead")


def run(args):
    """Print one line for each device and dtype; return 0, or 1 if one is wrong.

    Raises UserError for a device that is unknown, absent, or without kernels in this build.
    """
    names = dict.fromkeys(args.device or every_device())  # each once
    devices = [str(pick_device(name)) for name in names]
    unchecked = not args.device and torch.cuda.is_available() and "cuda:0" not in devices
    if unchecked and not args.json:
        print("this build has no CUDA kernels: no GPU is checked")
    results = []
    for device in devices:
        for dtype in ALLOWED:
            if args.dtype and _name(dtype) not in args.dtype:
                continue
            start = time.time()
            verdict, _, detail = check(device, dtype).partition(": ")
            seconds = time.time() - start
            results.append(
                {
                    "device": device,
                    "dtype": _name(dtype),
                    "verdict": verdict.lower(),
                    "detail": detail,
                    "seconds": round(seconds, 3),
                }
            )
            if not args.json:
                verdict = red(verdict) if verdict == "WRONG" else verdict
                detail = ": " + detail if detail else ""
                print(f"{device:8} {_name(dtype):9} {verdict}{detail} ({seconds:.1f} s)")
    wrong = any(result["verdict"] == "wrong" for result in results)
    if args.json:
        print(json.dumps({"right": not wrong, "results": results}, indent=2))
    return 1 if wrong else 0


def every_device():
    """The names of the CPU and of all GPUs that this build can use."""
    if not (torch.cuda.is_available() and lltm_decoupled.build_info()["cuda"]):
        return ["cpu"]
    return ["cpu", *(f"cuda:{index}" for index in range(torch.cuda.device_count()))]


def red(text):
    """The text in red, on a terminal whose user has nothing against colours (no-color.org)."""
    wanted = sys.stdout.isatty() and not os.environ.get("NO_COLOR")
    return f"\033[31m{text}\033[0m" if wanted else text


def _name(dtype):
    return str(dtype).replace("torch.", "")


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
    """The largest difference of a function of ours by that name from the one of the formula."""
    drawn = draw(leading, (BATCH, FEATURES, state_size), dtype)
    return difference(getattr(lltm_decoupled, name), getattr(reference, name), drawn, device)


def draw(leading, size, dtype):
    """The five arguments for a size of (batch_size, input_features, state_size), on the CPU."""
    generator = torch.Generator().manual_seed(0)
    batch_size, input_features, state_size = size
    shapes = [
        (*leading, batch_size, input_features),
        (3 * state_size, state_size + input_features),
        (3 * state_size,),
        (batch_size, state_size),
        (batch_size, state_size),
    ]
    drawn = [torch.randn(shape, generator=generator, dtype=torch.float64) for shape in shapes]
    drawn[1] /= shapes[1][1] ** 0.5
    return [tensor.to(dtype) for tensor in drawn]


def difference(function, formula, drawn, device):
    """The largest difference of any output or gradient, as a part of its largest number."""
    got = evaluate(function, [tensor.to(device) for tensor in drawn])
    expected = evaluate(formula, [tensor.double() for tensor in drawn])
    return max(
        ((a.double().cpu() - b).abs().max() / b.abs().max()).item() for a, b in zip(got, expected)
    )


def evaluate(function, tensors):
    """Its outputs, and the gradients of their sum."""
    tensors = [tensor.detach().requires_grad_() for tensor in tensors]
    outputs = function(*tensors)
    gradients = torch.autograd.grad(sum(output.sum() for output in outputs), tensors)
    return [*(output.detach() for output in outputs), *gradients]

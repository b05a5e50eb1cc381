"""The tutorial's ladder from Python to CUDA, and ours at its end: built, checked and timed.

The sources are in a checkout's benchmarks/stages. They are built at their first use, which takes
minutes for CUDA, and kept where torch keeps such builds.
"""

import os
import sys
import time
from typing import NamedTuple, Tuple

import torch

import lltm_decoupled

from .. import check, reference
from .._errors import UserError
from . import machine, options, report, timing
from .measure import summary

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
FOLDER = os.path.join(ROOT, "benchmarks", "stages")


class Stage(NamedTuple):
    """A step: its function, or the sources of the extension that has it."""

    cell: object = None
    sources: Tuple[str, ...] = ()

    @property
    def needs_gpu(self):
        return any(source.endswith(".cu") for source in self.sources)


STAGES = {
    "Python": Stage(reference.lltm_cell),
    "C++ (ATen)": Stage(sources=("aten.cpp",)),
    "CUDA, pointers": Stage(sources=("coupled.cpp", "pointers.cu")),
    "CUDA, accessors": Stage(sources=("coupled.cpp", "accessors.cu")),
    "decoupled (ours)": Stage(lltm_decoupled.lltm_cell),
}

# What the tutorial printed, at (16, 32, 128) in float32, on machines that it does not name:
# (device, stage) -> us forward, us backward
PUBLISHED_SIZE = (16, 32, 128)
PUBLISHED = {
    ("cpu", "Python"): (506.480, 444.694),
    ("cpu", "C++ (ATen)"): (349.335, 443.523),
    ("cuda", "Python"): (187.719, 410.815),
    ("cuda", "C++ (ATen)"): (149.802, 393.458),
    ("cuda", "CUDA, pointers"): (129.431, 304.641),
}

HEADER = (
    f"{'device':7} {'stage':17} {'forward us':>11} {'spread':>7} {'backward us':>12} {'spread':>7}"
    "   the tutorial's"
)


def run(args):
    """Print and write the ladder; return 0, or 1 where ours failed. Raises UserError."""
    devices, sizes, turns = options.pick_for_stages(args)
    if not os.path.isdir(FOLDER):
        raise UserError(f"--stages needs a checkout of the sources: there is no {FOLDER}")
    facts = machine.describe(devices[-1], args.threads)
    print(machine.in_words(facts))
    print("as the tutorial measures: forward; backward of the outputs' sum to weights and bias")
    cells, errors = build_all(any(device.type == "cuda" for device in devices))
    rows = []
    try:
        for size in sizes:
            print(f"\n(B, I, H) = {size}, float32\n{HEADER}")
            for device in devices:
                with machine.prepared(device, args.threads, tf32=False):
                    found = ladder(cells, errors, size, device, turns)
                rows += found
                for forward, backward in zip(found[::2], found[1::2]):
                    print(line(forward, backward))
    finally:
        report.write(args, facts, rows)
    ours = list(STAGES)[-1]
    return 1 if any(row["error"] for row in rows if row["stage"] == ours) else 0


def build_all(with_gpu):
    """({stage: cell}, {stage: why it is not there})"""
    cells, errors = {}, {}
    for name, stage in STAGES.items():
        if stage.needs_gpu and not with_gpu:
            continue
        try:
            cells[name] = stage.cell or as_cell(build(name))
        except Exception as error:  # no ninja, no compiler, no toolkit, or an error of a compiler
            errors[name] = timing.in_a_line(error)
    return cells, errors


def build(name):
    """The compiled module of a stage."""
    if ROOT not in sys.path:
        sys.path.append(ROOT)
    from build_support import load_folder, plan, probe

    sources = STAGES[name].sources
    # finds ninja in an environment that is not activated, and the toolkit that nvcc belongs to
    todo = plan.plan(**probe.gather(os.environ, lltm_decoupled.__version__))
    if STAGES[name].needs_gpu and not todo.with_cuda:
        raise RuntimeError(todo.decision)
    os.environ.update(todo.environment)
    cpp_extension = probe.import_cpp_extension()
    module_name = "lltm_stage_" + sources[-1].split(".")[0]
    print(f"building {', '.join(sources)}", end=" ... ", flush=True)
    start = time.time()
    try:
        module = cpp_extension.load(
            module_name,
            [os.path.join(FOLDER, source) for source in sources],
            extra_cflags=["/O2" if sys.platform == "win32" else "-O3"],
            extra_include_paths=[path for path in todo.include_dirs if os.path.isabs(path)],
            build_directory=load_folder.make(cpp_extension, f"{module_name}_{todo.flavour}"),
        )
    except Exception as error:  # of a compiler, in as many lines as it needs
        print(f"failed\n{error}")
        raise
    print(f"{time.time() - start:.0f} s")
    return module


def as_cell(module):
    """A cell of a module's forward and backward, as the tutorial puts them into autograd."""

    class Cell(torch.autograd.Function):
        @staticmethod
        def forward(ctx, input, weights, bias, old_h, old_cell):
            new_h, *kept = module.forward(input, weights, bias, old_h, old_cell)
            ctx.save_for_backward(*kept, weights)
            return new_h, kept[0]

        @staticmethod
        def backward(ctx, grad_h, grad_cell):
            grads = grad_h.contiguous(), grad_cell.contiguous()
            return tuple(module.backward(*grads, *ctx.saved_tensors))

    return Cell.apply


def ladder(cells, errors, size, device, turns):
    """Two rows, forward and backward, of each stage that this device can have."""
    errors, runs = dict(errors), {}
    drawn = check.draw((), size, torch.float32)
    for name, cell in cells.items():
        if STAGES[name].needs_gpu and device.type != "cuda":
            continue
        try:
            off = check.difference(cell, reference.lltm_cell, drawn, device)
            if not off <= check.ALLOWED[torch.float32]:
                raise ArithmeticError(f"differs from the formula by {off:.1e}")
            runs[name] = passes(cell, drawn, device)
        except Exception as error:  # of any extension
            errors[name] = timing.in_a_line(error)
    taken, failed = timing.measure(runs, turns, options.EFFORT["stages"][1])
    errors.update(failed)
    rows = []
    for name in STAGES:
        if name not in runs and name not in errors:
            continue
        published = PUBLISHED.get((device.type, name)) if size == PUBLISHED_SIZE else None
        for number, pass_name in enumerate(("forward", "backward")):
            rows.append(
                {
                    "device": device.type,
                    **dict(zip("BIH", size)),
                    "pass": pass_name,
                    "stage": name,
                    **summary([times[number] for times in taken.get(name, [])], steps=1),
                    "published_us": published and published[number],
                    "error": errors.get(name),
                }
            )
    return rows


def passes(cell, drawn, device):
    """A function that makes one step and returns the seconds of (forward, backward)."""
    input, weights, bias, old_h, old_cell = (tensor.to(device) for tensor in drawn)
    weights.requires_grad_()
    bias.requires_grad_()
    synchronize = timing.synchronizer(device)

    def call():
        synchronize()
        start = time.perf_counter()
        new_h, new_cell = cell(input, weights, bias, old_h, old_cell)
        synchronize()
        middle = time.perf_counter()
        (new_h.sum() + new_cell.sum()).backward()
        synchronize()
        return middle - start, time.perf_counter() - middle

    return call


def line(forward, backward):
    """One stage of the printed table."""
    start = f"{forward['device']:7} {forward['stage']:17} "
    if forward["error"]:
        return start + f"left out: {forward['error']}"
    for row, width in ((forward, 11), (backward, 12)):
        start += f"{row['us']:{width}.1f} {row['us_high'] - row['us_low']:7.1f} "
    if forward["published_us"] is None:
        return start.rstrip()
    return start + f"  {forward['published_us']:.3f} / {backward['published_us']:.3f}"

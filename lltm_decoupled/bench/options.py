"""The options of `bench`, and what they come to on a device."""

import argparse
import os
import re
from typing import List, NamedTuple, Optional, Tuple

import torch

from .. import _outputs
from .._errors import UserError
from ..demo.options import MOST_THREADS, at_least, file_name, pick_device
from . import plot, report
from .contenders import CONTENDERS, NAMES
from .measure import PASSES

EXAMPLES = """
examples:
  python -m lltm_decoupled bench --quick
  python -m lltm_decoupled bench --what layer --dtype float32,bfloat16 --json layer.json
  python -m lltm_decoupled bench --what layer --tf32 --sizes 64x256x256 64x512x512
  python -m lltm_decoupled bench --what layer --contenders LSTM --plot layer.png
  python -m lltm_decoupled bench --stages
"""

DTYPES = ("float32", "float64", "float16", "bfloat16")
STAGE_SIZES = [(16, 32, 128), (64, 1024, 128)]

# (B, I, H) where nobody asks for others
CELL_SIZES = [(16, 32, 128), (64, 1024, 128), (64, 512, 512), (256, 1024, 1024)]
SIZES = {
    ("cell", "cpu"): [(16, 32, 128), (1, 256, 256), (16, 256, 256), (64, 512, 512)],
    ("cell", "cuda"): CELL_SIZES,
    ("layer", "cpu"): [(16, 32, 128), (1, 256, 256), (16, 512, 512), (64, 512, 512)],
    ("layer", "cuda"): [
        (16, 128, 128),
        (62, 16, 168),
        (64, 256, 256),
        (16, 512, 512),
        (64, 512, 512),
        (16, 768, 768),
        (16, 1024, 1024),
        (64, 1024, 1024),
        (256, 1024, 1024),
    ],
}
QUICK = 2  # of these
# For a plot: over H at one B, and over B at one H.
SWEEPS = {
    "cpu": [(b, h, h) for b, h in ((4, 64), (4, 128), (4, 256), (4, 512), (1, 256), (16, 256))],
    "cuda": [(64, h, h) for h in (64, 128, 256, 512, 1024, 1536)]
    + [(b, 512, 512) for b in (1, 4, 16, 128, 256)],
}
STEPS = {"cpu": 64, "cuda": 512}
# turns, and calls of each contender in a turn
EFFORT = {"cell": (30, 20), "layer": (5, 4), "stages": (30, 20)}


class Settings(NamedTuple):
    """What is to be measured, everything decided."""

    device: torch.device
    threads: int
    whats: List[str]
    dtypes: List[torch.dtype]
    tf32: bool
    sizes: Optional[List[Tuple[int, int, int]]]  # None: the usual ones
    steps: int
    passes: List[str]
    contenders: List[str]
    turns: Optional[int]
    quick: bool
    sweep: bool

    def sizes_of(self, what):
        kind = "cuda" if self.device.type == "cuda" else "cpu"
        usual = SWEEPS[kind] if self.sweep else SIZES[what, kind]
        return self.sizes or usual[: QUICK if self.quick else None]

    def effort(self, what):
        """(turns, calls in a turn)"""
        turns, calls = EFFORT[what]
        return self.turns or (3 if self.quick else turns), calls


def add_arguments(parser):
    """Add the options to an argparse parser."""
    parser.epilog = EXAMPLES
    add = parser.add_argument_group("what is measured").add_argument
    add("--what", choices=("cell", "layer"), help="one of the two (default: both)")
    add("--device", help="cpu, cuda, cuda:1, ... (default: a GPU where this build can use one)")
    add(
        "--dtype",
        type=_names("dtype", DTYPES),
        action="append",
        metavar="D[,D...]",
        help=f"some of {', '.join(DTYPES)} (default: float32)",
    )
    add("--tf32", action="store_true", help="let float32 products of a GPU be TF32, for all")
    add(
        "--sizes",
        type=_size,
        nargs="+",
        action="extend",
        metavar="BxIxH",
        help="batch x inputs x state, such as 16x32x128 (default: some usual ones)",
    )
    steps = f"of a layer (default: {STEPS['cuda']} on a GPU, {STEPS['cpu']} on a CPU)"
    add("--steps", type=at_least(1), metavar="T", help=steps)
    add(
        "--passes",
        type=_names("pass", PASSES),
        metavar="P[,P...]",
        help=f"some of {', '.join(PASSES)} (default: all)",
    )
    add(
        "--contenders",
        type=_names("contender", NAMES),
        metavar="C[,C...]",
        help=f"some of {', '.join(NAMES)} (default: all); ours is always measured",
    )
    add("--stages", action="store_true", help="the tutorial's ladder instead; from a checkout")

    add = parser.add_argument_group("how").add_argument
    cpu = "of the CPU (default: 1)"
    add("--threads", type=at_least(1, MOST_THREADS), default=1, metavar="N", help=cpu)
    turns = "turns of each contender (default: 30 of 20 calls for a cell, 5 of 4 for a layer)"
    add("--turns", type=at_least(1), metavar="N", help=turns)
    add("--quick", action="store_true", help="two sizes and three turns, for a first look")

    add = parser.add_argument_group("result").add_argument
    add("--json", type=file_name, metavar="FILE", help="write everything, the machine too")
    add("--csv", type=file_name, metavar="FILE", help="write the table")
    plotted = "draw us a step over H and over B; needs matplotlib; sweeps over both by default"
    add("--plot", type=file_name, metavar="FILE.png", help=plotted)


def check_outputs(args):
    """Raise UserError before anything is measured for what could not be written after it."""
    written = {"--json": args.json, "--csv": args.csv, "--plot": args.plot}
    _outputs.check_apart({option: [path] for option, path in written.items() if path})
    for path in filter(None, written.values()):
        _outputs.check_writable(path)
    if args.json:
        _outputs.check_replaceable(args.json, "JSON of bench", report.is_json)
    if args.csv:
        _outputs.check_replaceable(args.csv, "CSV of bench", report.is_csv)
    if args.plot:
        plot.need_matplotlib()
        if os.path.splitext(args.plot)[1].lower() != ".png":
            raise UserError(f"--plot writes PNG: {args.plot} does not end in .png")
        _outputs.check_picture_replaceable(args.plot)


def pick(args):
    """The Settings. Raises UserError for what does not go together or is not there."""
    check_outputs(args)
    dtypes = list(dict.fromkeys(name for names in args.dtype or [["float32"]] for name in names))
    whats = [args.what] if args.what else ["cell", "layer"]
    for name in args.contenders or ():
        if not any(name in CONTENDERS[what] for what in whats):
            raise UserError(f"--contenders: {name} is no {whats[0]}")
    device = pick_device(args.device)
    if args.tf32 and device.type != "cuda":
        raise UserError("--tf32 needs a GPU")
    if args.tf32 and dtypes != ["float32"]:
        raise UserError("--tf32 is a way of float32: leave the other dtypes out")
    return Settings(
        device=device,
        threads=args.threads,
        whats=whats,
        dtypes=[getattr(torch, name) for name in dtypes],
        tf32=args.tf32,
        sizes=list(dict.fromkeys(args.sizes)) if args.sizes else None,
        steps=args.steps or STEPS["cuda" if device.type == "cuda" else "cpu"],
        passes=args.passes or list(PASSES),
        contenders=args.contenders or NAMES,
        turns=args.turns,
        quick=args.quick,
        sweep=bool(args.plot),
    )


def pick_for_stages(args):
    """(devices, sizes, turns) of the ladder. Raises UserError."""
    for option in ("what", "dtype", "steps", "passes", "contenders", "plot", "tf32"):
        if getattr(args, option):
            raise UserError(f"--{option} does not go with --stages")
    check_outputs(args)
    devices = [pick_device(args.device)]
    if args.device is None and devices[0].type != "cpu":
        devices.insert(0, torch.device("cpu"))
    turns = args.turns or (3 if args.quick else EFFORT["stages"][0])
    return devices, args.sizes or STAGE_SIZES, turns


def _names(what, choices):
    """A type for argparse: names among the choices, between commas."""

    def names(text):
        found = [name.strip() for name in text.split(",")]
        for name in found:
            if name not in choices:
                wrong = f"unknown {what} {name!r}: choose among {', '.join(choices)}"
                raise argparse.ArgumentTypeError(wrong)
        return list(dict.fromkeys(found))

    return names


def _size(text):
    match = re.fullmatch(r"([1-9]\d*)x([1-9]\d*)x([1-9]\d*)", text)
    if not match:
        wrong = f"{text!r} is no size: batch x inputs x state, such as 16x32x128"
        raise argparse.ArgumentTypeError(wrong)
    return tuple(map(int, match.groups()))

"""The demo's options, and how they meet what a checkpoint or the machine brings."""

import argparse
import math

import torch

import lltm_decoupled

from .._errors import UserError
from . import checkpoint, distributed
from .text import read_text

# Without --steps or --seconds, a training ends at whichever comes first.
STEP_LIMIT = 1600
TIME_LIMIT = 50.0  # seconds, for slow machines

MOST_THREADS = 1024  # of thousands the system refuses some, and OpenMP then ends the process
MOST_SEED = 2**64 - 1
MOST = 1e30  # of a learning rate: Adam's numbers still fit into a float

DEFAULTS = {"layer": "LLTM", "hidden": 256, "batch": 32, "window": 16, "lr": 0.01}


def add_arguments(parser):
    """Add the demo's options to an argparse parser."""
    add = parser.add_argument_group("text").add_argument
    add(
        "--text",
        type=file_name,
        metavar="FILE",
        help="text to learn (default: the manual in every Python)",
    )
    add("--encoding", default="utf-8", help="encoding of FILE (default: %(default)s)")

    add = parser.add_argument_group(
        "training", "Where --load is given, the defaults are the checkpoint's."
    ).add_argument
    limits = f"default: {STEP_LIMIT}, or what {TIME_LIMIT:g} seconds allow"
    add("--steps", type=at_least(0), metavar="N", help=f"updates to make, maybe 0 ({limits})")
    add("--seconds", type=_positive, metavar="S", help="end the training after this time")
    add("--device", help="cpu, cuda, cuda:1, ... (default: a GPU where this build can use one)")
    layers = "LLTM, or for comparison torch's LSTM with as many parameters (default: LLTM)"
    add("--layer", choices=("LLTM", "LSTM"), help=layers)
    for name, meaning in (
        ("hidden", "state size of LLTM"),
        ("batch", "pieces of text that are read in parallel"),
        ("window", "characters to backpropagate through"),
    ):
        meaning += f" (default: {DEFAULTS[name]})"
        add(f"--{name}", type=at_least(1), metavar="N", help=meaning)
    add("--lr", type=_positive, help=f"first learning rate (default: {DEFAULTS['lr']})")
    # One by default: a cell's matrices are too small to share out, all the more on a busy machine,
    # and the number of cores then has no say in the result.
    threads = "CPU threads (default: %(default)s)"
    add("--threads", type=at_least(1, MOST_THREADS), default=1, metavar="N", help=threads)
    seeds = at_least(0, MOST_SEED)
    add("--seed", type=seeds, default=0, metavar="N", help="(default: %(default)s)")

    add = parser.add_argument_group("result").add_argument
    length = "characters to write at the end (default: %(default)s)"
    add("--sample", type=at_least(0), default=400, metavar="N", help=length)
    kept = "write checkpoints to FILE; the one before is kept as FILE.previous"
    add("--save", type=file_name, metavar="FILE", help=kept)
    often = "updates from one checkpoint to the next; one more at the end (default: %(default)s)"
    add("--save-every", type=at_least(1), default=100, metavar="N", help=often)
    add(
        "--load",
        type=file_name,
        metavar="FILE",
        help="go on from a checkpoint: --steps counts from there",
    )
    resume = (
        "go on from --save's FILE where it is there: the same command goes on with a training that "
        "was killed, --steps counts from the training's start, and --metrics is continued"
    )
    add("--resume", action="store_true", help=resume)
    lines = "write a JSON line for each update; a sample is one row's window of characters"
    add("--metrics", type=file_name, metavar="FILE", help=lines)
    add(
        "--plot",
        type=file_name,
        metavar="FILE",
        help="draw the loss of each update, as .png, .svg or .pdf",
    )


def read_inputs(args):
    """Return (the text, the contents of the checkpoint to go on from or None)."""
    text = read_text(args.text, args.encoding)
    if not args.resume:
        return text, checkpoint.load(args.load) if args.load else None
    stored, mistake = checkpoint.load_latest(args.save)
    if mistake:
        print(f"resume     from {checkpoint.previous(args.save)}, for {mistake}")
    elif stored is None:
        print(f"resume     nothing in {args.save} yet: from the beginning")
    if stored and stored["text"] != checkpoint.fingerprint(text):
        raise UserError(f"{args.save} holds a training on another text: give it, or train anew")
    return text, stored


def pick_settings(args, stored):
    """Return the dict of sizes and learning rate: the user's, else the checkpoint's, else ours.

    Raises UserError where the user asks for another layer or state size than the checkpoint's or,
    with --resume, for another training.
    """
    settings = dict(DEFAULTS, **(stored["settings"] if stored else {}))
    fixed = DEFAULTS if args.resume else ("layer", "hidden")
    for name in fixed if stored else ():
        asked = getattr(args, name)
        if asked not in (None, settings[name]):
            what, path = ("training", args.save) if args.resume else ("model", args.load)
            raise UserError(f"{path} holds a {what} with --{name} {settings[name]}, not {asked}")
    chosen = {name: getattr(args, name) for name in DEFAULTS}
    settings.update({name: value for name, value in chosen.items() if value is not None})
    return settings


def pick_limits(args, done):
    """Return (updates to make, seconds), None for no limit, after ``done`` updates."""
    limited = args.steps is not None or args.seconds is not None
    steps, seconds = (args.steps, args.seconds) if limited else (STEP_LIMIT, TIME_LIMIT)
    if args.resume and steps is not None:
        steps = max(0, steps - done)
    return steps, seconds


def pick_device(name=None):
    """Return a torch.device that works: the named one, else a GPU that this build can use.

    Of several processes on a machine each gets a GPU of its own. Raises UserError for a device that
    is unknown, absent, or without kernels in this build.
    """
    has_kernels = lltm_decoupled.build_info()["cuda"]
    if name is None:
        name = "cuda" if has_kernels and torch.cuda.is_available() else "cpu"
    if name.startswith("cuda") and torch.cuda.is_available():
        name = distributed.own_gpu(name)
    try:
        device = torch.device(name)
        if device.type == "meta":
            raise RuntimeError("nothing is computed there")
        torch.zeros(1, device=device).item()
    except Exception as error:  # its type depends on the device and on torch's version
        # Of several lines the first, and of that the first sentence: torch lists all it knows.
        reason = str(error).partition("\n")[0].partition(". ")[0][:200]
        raise UserError(f"cannot use device {name!r}: {reason}") from None
    if device.type == "cuda" and not has_kernels:
        raise UserError(f"cannot use device {name!r}: this build of lltm_decoupled has no CUDA")
    return device


def at_least(least, most=None):
    """Return a type of options: whole numbers in a range."""

    def number(text):
        value = int(text)
        if value < least:
            raise argparse.ArgumentTypeError(f"{value} is less than {least}")
        if most is not None and value > most:
            raise argparse.ArgumentTypeError(f"{value} is more than {most}")
        return value

    number.__name__ = "whole number"  # argparse: invalid whole number value: 'x'
    return number


def file_name(text):
    """A type of options. An empty name is most likely that of an unset variable of a shell."""
    if not text:
        raise argparse.ArgumentTypeError("the name of the file is empty")
    return text


def _positive(text):
    value = float(text)
    if not (value > 0 and math.isfinite(value)):
        raise argparse.ArgumentTypeError(f"{text} is not a positive number")
    if value > MOST:
        raise argparse.ArgumentTypeError(f"{text} is more than {MOST:g}")
    return value


_positive.__name__ = "number"

"""Train a character-level language model with an LLTM layer, and let it write.

It reads the manual that every Python carries (or --text FILE), keeps the last part aside, and
tells in bits per character how well the model foretells that part before and after training, with
this library's layer and with the plain PyTorch reference, and how much faster the layer is than a
loop over the cell. Ctrl-C ends the training early and keeps what was learnt. Under torchrun the
processes share the rows of each batch: torchrun --nproc_per_node=2 -m lltm_decoupled demo.
"""

import contextlib
import math

import torch

import lltm_decoupled

from .._arguments import counted
from .._errors import UserError
from . import checkpoint, distributed
from .curve import Curve, draw
from .model import EMBEDDING, CharacterModel, bits_per_character, lstm_of_equal_size
from .options import (
    DEFAULTS,
    add_arguments,
    pick_device,
    pick_limits,
    pick_settings,
    read_inputs,
)
from .outputs import check_outputs
from .report import report
from .text import alphabet_of, encode, split
from .training import Interruption, Trainer

__all__ = ["add_arguments", "run"]


def run(args):
    """Train, report and write; return 0, or 1 where the layer and the reference disagree.

    Raises UserError for what the user can put right, before any training where that can be known.
    """
    threads = torch.get_num_threads()
    torch.set_num_threads(args.threads)
    try:
        with distributed.joined():
            return demonstrate(args)
    except (RuntimeError, ValueError) as error:
        if not _is_of_memory(error):
            raise
        sizes = {
            name: getattr(args, name) or DEFAULTS[name] for name in ("hidden", "batch", "window")
        }
        asked = " ".join(f"--{name} {value}" for name, value in sizes.items())
        raise UserError(f"not enough memory for this model and its windows, {asked}") from error
    finally:
        torch.set_num_threads(threads)


def _is_of_memory(error):
    """Whether torch found none; the type that it has for this is a GPU's."""
    words = (
        "out of memory",
        "allocate memory",
        "not enough memory",
        "no memory",
        "size calculation",
    )
    return any(part in str(error) for part in words)


def demonstrate(args):
    """Do the work of :func:`run`, or one process's part of it.

    The first process alone reads, writes and evaluates. A mistake is raised in all of them.
    """
    distributed.by_the_first(check_outputs, args)
    device = distributed.agreed(pick_device, args.device)
    text, stored = distributed.share(distributed.by_the_first(read_inputs, args))
    settings = pick_settings(args, stored)
    batch, window, hidden = settings["batch"], settings["window"], settings["hidden"]
    is_lltm = settings["layer"] == "LLTM"

    alphabet = stored["alphabet"] if stored else alphabet_of(text)
    learned, held_out = split(encode(text, alphabet).to(device), batch, window)
    torch.manual_seed(args.seed)
    if not is_lltm:
        hidden = lstm_of_equal_size(len(alphabet), hidden)
    layer = lltm_decoupled.LLTMSequence if is_lltm else torch.nn.LSTM
    model = CharacterModel(len(alphabet), hidden, layer).to(device)
    trainer = Trainer(model, learned, batch, window, settings["lr"])
    if stored:
        checkpoint.restore(stored, trainer, settings, text, args.load or args.save)

    parameters = sum(p.numel() for p in model.parameters())
    print(
        f"text       {args.text or 'the manual of Python'}: {len(text):,} characters, "
        f"an alphabet of {len(alphabet)}; the last {len(held_out):,} are held out"
    )
    print(
        f"model      {settings['layer']}({EMBEDDING}, {hidden}), {parameters:,} parameters in all, "
        f"on {device}"
    )
    if distributed.count() > 1:
        print(f"processes  {distributed.count()}, which share the {batch} rows of each batch")
    if distributed.is_first():
        before = bits_per_character(model, held_out, window)
        done = counted(trainer.step, "step")
        print(f"before     {before:.4f} bits per held-out character, after {done}")

    def save():
        contents = trainer, trainer.whole_state(), settings, alphabet, text
        distributed.by_the_first(checkpoint.save, args.save, *contents)

    # A model that knows nothing but the alphabet needs log2(symbols) bits.
    diverged = 2 * math.log2(len(alphabet) + 1)

    def after_update(loss):
        if args.metrics or args.plot:
            curve.add(trainer.step, loss, trainer.seconds, batch)
        if curve.mistake:  # as by Ctrl-C: all processes end after the next update, and save
            interruption.request()
        due = args.save and trainer.step % args.save_every == 0
        if due and loss / math.log(2) < diverged:
            save()

    def evaluate():
        bits = bits_per_character(model, held_out, window)
        if not bits < diverged:
            raise UserError(f"the training diverged ({bits:g} bits), not saved; try a lower --lr")
        return bits

    steps, seconds = pick_limits(args, trainer.step)
    first_step = trainer.step if args.resume else 0
    curve = distributed.by_the_first(Curve, args.metrics, first_step) or Curve()
    # Ctrl-C is held back until what was learnt is saved.
    with Interruption() as interruption, contextlib.closing(curve):
        ended = trainer.run(interruption, steps, seconds, after_update)
        after = distributed.by_the_first(evaluate)
        if args.save:
            save()
        if args.plot:
            distributed.by_the_first(draw, args.plot, curve.points)
    distributed.by_the_first(curve.check)

    code = None
    if distributed.is_first():
        code = report(args, trainer, alphabet, held_out, after, ended)
    return distributed.share(code)

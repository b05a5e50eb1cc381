"""Train a character-level language model with an LLTM layer, and let it write.

It reads the manual that every Python carries (or --text FILE), keeps the last part aside, and
tells in bits per character how well the model foretells that part before and after training, with
this library's layer and with the plain PyTorch reference, and how much faster the layer is than a
loop over the cell. Ctrl-C ends the training early and keeps what was learnt.
"""

import math

import torch

import lltm_decoupled

from ..cli import UserError
from . import checkpoint
from .model import (
    EMBEDDING,
    CharacterModel,
    bits_per_character,
    generate,
    lstm_of_equal_size,
)
from .options import STEP_LIMIT, TIME_LIMIT, add_arguments, pick_device, pick_settings
from .speed import seconds_a_window
from .text import alphabet_of, encode, read_text, split
from .training import Interruption, Trainer

__all__ = ["add_arguments", "run"]

AGREEMENT = 1e-4  # bits per character


def run(args):
    """Train, report and write; return 0, or 1 where the layer and the reference disagree.

    Raises UserError for what the user can put right, before any training where that can be known.
    """
    threads = torch.get_num_threads()
    torch.set_num_threads(args.threads)
    try:
        return demonstrate(args)
    finally:
        torch.set_num_threads(threads)


def demonstrate(args):
    """Do the work of :func:`run`."""
    if args.save:
        checkpoint.check_writable(args.save)
    device = pick_device(args.device)
    text = read_text(args.text, args.encoding)
    stored = checkpoint.load(args.load) if args.load else None
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
        checkpoint.restore(stored, trainer, settings, text, args.load)

    parameters = sum(p.numel() for p in model.parameters())
    print(
        f"text       {args.text or 'the manual of Python'}: {len(text):,} characters, "
        f"{len(alphabet)} different ones; the last {len(held_out):,} are held out"
    )
    print(
        f"model      {settings['layer']}({EMBEDDING}, {hidden}), {parameters:,} parameters in all, "
        f"on {device}"
    )
    before = bits_per_character(model, held_out, window)
    print(f"before     {before:.4f} bits per held-out character, after {trainer.step} steps")

    limited = args.steps is not None or args.seconds is not None
    steps, seconds = (args.steps, args.seconds) if limited else (STEP_LIMIT, TIME_LIMIT)
    # Ctrl-C is held back until what was learnt is saved.
    with Interruption() as interruption:
        ended = trainer.run(interruption, steps, seconds)
        after = bits_per_character(model, held_out, window)
        # A model that knows nothing but the alphabet needs log2(symbols) bits.
        if not after < 2 * math.log2(len(alphabet) + 1):
            raise UserError(f"the training diverged ({after:g} bits), not saved; try a lower --lr")
        if args.save:
            checkpoint.save(args.save, trainer, settings, alphabet, text)

    print(f"after      {after:.4f} bits per held-out character, after {trainer.step} steps")
    speed = trainer.characters / trainer.seconds if trainer.characters else 0
    early = f"; ended early: {ended}" if ended else ""
    print(f"training   {trainer.seconds:.1f} s, {speed:,.0f} characters a second{early}")
    if args.save:
        print(f"saved      {args.save}")
    agrees = True
    if is_lltm:
        report_speed(model.layer, trainer.windows[0][0])
        agrees = report_reference(model, held_out, window, after)
    if args.sample:
        written = generate(model, held_out[:window], args.sample, window, args.seed)
        print("sample\n" + "".join(alphabet[code] for code in written.tolist()))
    return 0 if agrees else 1


def report_speed(layer, characters):
    """Print what a window costs the layer and a Python loop over the cell."""
    fast, slow = seconds_a_window(layer, characters)
    print(
        f"speed      a window, there and back: {fast * 1e3:.2f} ms; "
        f"a loop over the cell takes {slow * 1e3:.2f} ms, {slow / fast:.1f} times as long"
    )


def report_reference(model, held_out, window, bits):
    """Print the figure of the plain PyTorch layer with the same weights; return if it agrees."""
    symbols, hidden = model.readout.weight.shape
    plain = CharacterModel(symbols, hidden, layer=lltm_decoupled.reference.LLTMSequence)
    plain.load_state_dict(model.state_dict())
    expected = bits_per_character(plain.to(held_out.device), held_out, window)
    difference = abs(bits - expected)
    agrees = difference <= AGREEMENT
    verdict = "agrees" if agrees else "DISAGREES"
    print(
        f"reference  {expected:.4f} bits with the plain PyTorch layer: "
        f"{verdict} (difference {difference:.1e}, allowed {AGREEMENT:.0e})"
    )
    return agrees

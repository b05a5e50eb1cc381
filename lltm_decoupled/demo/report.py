"""What the demo tells after the training: its figures, the reference's, and a text."""

import lltm_decoupled

from .._arguments import counted
from .model import CharacterModel, bits_per_character, generate
from .speed import seconds_a_window

AGREEMENT = 1e-4  # bits per character


def report(args, trainer, alphabet, held_out, bits, ended):
    """Print it all; return the exit code: 0, or 1 where layer and reference disagree.

    ``bits`` were found per character of ``held_out``; ``ended`` says why the training ended early.
    """
    model, window = trainer.model, len(trainer.windows[0][0])
    done = counted(trainer.step, "step")
    print(f"after      {bits:.4f} bits per held-out character, after {done}")
    early = f"; ended early: {ended}" if ended else ""
    print(f"training   {speed_of(trainer, window)}{early}")
    for what, path in (("saved", args.save), ("metrics", args.metrics), ("plot", args.plot)):
        if path:
            print(f"{what:10} {path}")
    agrees = True
    if isinstance(model.layer, lltm_decoupled.LLTMSequence):
        report_speed(model.layer, trainer.windows[0][0])
        agrees = report_reference(model, held_out, window, bits)
    if args.sample:
        written = generate(model, held_out[:window], args.sample, window, args.seed)
        print("sample\n" + "".join(alphabet[code] for code in written.tolist()))
    return 0 if agrees else 1


def speed_of(trainer, window):
    """Return the words for it, in characters and in the samples that --metrics counts."""
    if not trainer.characters:
        return "none in this run"
    speed = trainer.characters / trainer.seconds
    return (
        f"{trainer.seconds:.1f} s, {counted(speed, 'character', ',.0f')} a second "
        f"({counted(speed / window, 'sample', ',.0f')}, each a window of {window})"
    )


def report_speed(layer, characters):
    """Print what a window costs the layer and a Python loop over the cell."""
    fast, slow = seconds_a_window(layer, characters)
    print(
        f"speed      a window, forward and backward: {fast * 1e3:.2f} ms; "
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

"""What the demo writes, checked before it trains: no file is lost, and each output has its own."""

import os

from .. import _outputs
from .._errors import UserError
from . import checkpoint, curve


def check_outputs(args):
    """Raise UserError before the training for what could not be written after it."""
    if args.resume and not args.save:
        raise UserError("--resume goes on from the FILE of --save FILE, which is not given")
    if args.resume and args.load:
        raise UserError("--resume goes on from --save's FILE, --load from another: give one")
    if args.save and os.path.islink(args.save):
        args.save = os.path.realpath(args.save)  # the link stays
    written = {
        option: [path, *companions(path)]
        for option, path, companions in (
            ("--save", args.save, checkpoint.companions),
            ("--metrics", args.metrics, curve.companions),
            ("--plot", args.plot, lambda path: []),
        )
        if path
    }
    _outputs.check_apart(written)
    for paths in written.values():
        _outputs.check_writable(paths[0])
    _check_not_overwritten(args, written)
    if args.save:
        # With --resume it may be a damaged one, which is kept.
        checkpoint.check_replaceable(args.save, itself=not args.resume)
    if args.metrics:
        curve.check_replaceable(args.metrics)
    if args.plot:
        curve.check_drawable(args.plot)
        _outputs.check_picture_replaceable(args.plot)


def _check_not_overwritten(args, written):
    """Raise UserError where an output, or what is written beside it, is an input."""
    inputs = (("--text", "text", args.text), ("--load", "checkpoint", args.load))
    for option, paths in written.items():
        real = [_outputs.real(path) for path in paths]
        for source, what, path in inputs:
            # A training that goes on may be saved where it came from.
            own = real[1:] if (option, source) == ("--save", "--load") else real
            if path and _outputs.real(path) in own:
                raise UserError(
                    f"{option} {paths[0]} would overwrite the {what}, {path}: "
                    f"{option} and {source} need a file each"
                )

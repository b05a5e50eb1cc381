"""The command line: ``python -m lltm_decoupled {info,check,demo,bench}``.

A command is a module or package with ``add_arguments(parser)`` and ``run(args) -> exit code``.
A user's mistake is raised as :class:`UserError` and ends in one line on stderr and exit code 2.
"""

import argparse
import os
import sys

from . import _streams, bench, check, demo, info
from ._errors import UserError
from ._version import __version__
from .demo import distributed

# command -> (module, what it does)
COMMANDS = {
    "info": (info, "report the environment and what this build can do"),
    "check": (check, "compare this machine's devices with the formula"),
    "demo": (demo, "train a character-level language model on English text"),
    "bench": (bench, "time the cell and the layer against their contenders"),
}

EXAMPLES = {
    "info": "info --json > report.json",
    "check": "check --device cpu --dtype float32",
    "demo": "demo --text novel.txt --save model.pt",
    "bench": "bench --stages",
}
EXIT_CODES = """\
exit codes:
  0    done, and all is right
  1    a comparison failed, or the reader of the output left
  2    a mistake in the command, something that this machine has not, or a full disk; one
       line says what
  130  interrupted with Ctrl-C; the demo saves then, and ends with 0"""

# Environment variables that operators read, and their values.
SWITCHES = {
    "LLTM_SEQUENCE_PATH": ("loop", "persistent"),
    "LLTM_CPU_PRODUCTS": ("core", "aten"),
}
INTERRUPTED = 130  # what shells report for a program that SIGINT ended


class _Parser(argparse.ArgumentParser):
    def error(self, message):
        # argparse prints the whole usage first; the mistake would be lost below it.
        _tell(self.prog, f"{message} (see {self.prog} --help)")
        self.exit(2)


def build_parser():
    """Return the parser of every command; the parsed arguments hold ``run`` and ``prog``."""
    parser = _Parser(
        prog="python -m lltm_decoupled",
        description="The LLTM cell and layer on a core that knows no framework.",
        epilog=f"example:\n  python -m lltm_decoupled check\n\n{EXIT_CODES}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"lltm_decoupled {__version__}")
    parser.set_defaults(prog=parser.prog)
    # Not required: argparse would miss the command before it tells what it does not know.
    commands = parser.add_subparsers(dest="command", metavar="command")
    for name, (module, summary) in COMMANDS.items():
        command = commands.add_parser(name, help=summary, description=module.__doc__)
        command.epilog = f"example:\n  {parser.prog} {EXAMPLES[name]}"  # a module may have more
        command.formatter_class = argparse.RawDescriptionHelpFormatter
        module.add_arguments(command)
        command.set_defaults(run=module.run, prog=command.prog)
    return parser


def main(argv=None):
    """Run one command and return its exit code: 0 done, 1 a check failed, 2 a user's mistake.

    Of several processes that torchrun started, the first one prints.
    """
    with _streams.prepared(), distributed.only_the_first_prints():
        parser = build_parser()
        try:
            args, unknown = parser.parse_known_args(argv)
            if not unknown and args.command:
                return _run(args)
        except _streams.OutputError as error:  # of --help
            return _end_without_output(parser.prog, error)
        mistake = "the following arguments are required: command"
        if unknown:  # here, as argparse would point to the help of all commands
            mistake = f"unrecognized arguments: {' '.join(unknown)}"
        _tell(args.prog, f"{mistake} (see {args.prog} --help)")
        return 2


def _check_environment():
    """Raise UserError now for what every operator would refuse."""
    for name, legal in SWITCHES.items():
        value = os.environ.get(name) or legal[0]
        if value not in legal:
            raise UserError(f"{name} must be {' or '.join(legal)}, got {value}")


def _run(args):
    try:
        if args.command != "info":  # which reports whatever there is
            _check_environment()
        code = args.run(args)
        sys.stdout.flush()
        return code
    except _streams.OutputError as error:
        return _end_without_output(args.prog, error)
    except UserError as error:
        _tell(args.prog, error)
        return 2
    except KeyboardInterrupt:
        if distributed.is_first():
            _streams.tell(f"{args.prog}: interrupted")
        return INTERRUPTED


def _end_without_output(prog, error):
    """Return the exit code where stdout took no more; it is told unless its reader has left."""
    _streams.give_up(sys.stdout)
    if isinstance(error.__cause__, BrokenPipeError):  # `... | head`
        return 1
    # The first process alone prints, so that the others know of nothing to wait for.
    _streams.tell(f"{prog}: error: cannot write the output: {error}")
    return 2


def _tell(prog, mistake):
    line = " ".join(str(mistake).split())
    distributed.tell_mistake(f"{prog}: error: {line}")

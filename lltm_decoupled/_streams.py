"""The streams of a command: a closed one, and a standard output that takes no more."""

import contextlib
import os
import sys


class OutputError(Exception):
    """The standard output took no more; ``__cause__`` is the OSError.

    No OSError itself: argparse keeps those of its help to itself.
    """


@contextlib.contextmanager
def prepared():
    """Within this context both streams can be printed to, and stdout's errors are OutputErrors."""
    with contextlib.ExitStack() as stack:
        # Python has None for a stream that the shell has closed (`>&-`): it goes nowhere then.
        if sys.stderr is None:
            stack.enter_context(contextlib.redirect_stderr(stack.enter_context(_nowhere())))
        if sys.stdout is None:
            stack.enter_context(contextlib.redirect_stdout(stack.enter_context(_nowhere())))
        # A sample may hold characters that the terminal's encoding lacks: show "?" for those. And
        # whoever reads through a pipe shall see each line when it is printed.
        if hasattr(sys.stdout, "reconfigure"):
            sys.stdout.reconfigure(errors="replace", line_buffering=True)
        stack.enter_context(contextlib.redirect_stdout(_Output(sys.stdout)))
        stack.callback(_let_go_of_stderr)
        yield


def give_up(stream):
    """Let a stream lead nowhere, or Python's own flush at its exit would fail, with code 120."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def tell(line):
    """Print to stderr. Where that fails there is nobody to tell it, and the exit code is left."""
    with contextlib.suppress(OSError):
        print(line, file=sys.stderr, flush=True)


def _let_go_of_stderr():
    try:
        sys.stderr.flush()
    except OSError:  # what was written there, by whomever, is still in its buffer
        give_up(sys.stderr)


def _nowhere():
    return open(os.devnull, "w", encoding="utf-8")


class _Output:
    """A stream whose errors can be told from those of other files."""

    def __init__(self, stream):
        self._stream = stream

    def __getattr__(self, name):
        return getattr(self._stream, name)

    def write(self, text):
        return _checked(self._stream.write, text)

    def flush(self):
        return _checked(self._stream.flush)


def _checked(action, *arguments):
    try:
        return action(*arguments)
    except OSError as error:
        raise OutputError(error.strerror or str(error)) from error

"""Text in, tensors out: reading, the alphabet, and windows to train on."""

import os
import stat

import torch

from .._arguments import counted
from .._errors import UserError

HELD_OUT = 0.05  # the last part of the text is kept away from training


def read_text(path, encoding="utf-8"):
    """Return the text of a file, or Python's own manual where ``path`` is None.

    Raises UserError where there is no such file or its bytes are not text in ``encoding``.
    """
    if path is None:
        return python_manual()
    try:
        _check_ends(path)
        with open(path, encoding=encoding) as file:
            return file.read()
    except LookupError:
        raise UserError(f"unknown encoding {encoding!r}") from None
    except UnicodeError as error:
        raise UserError(
            f"{path} is not {encoding} text ({error}); name its encoding with --encoding"
        ) from None
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror}") from None


def _check_ends(path):
    """Raise UserError for a device, most of which give bytes for ever; a pipe ends."""
    mode = os.stat(path).st_mode
    if stat.S_ISCHR(mode) or stat.S_ISBLK(mode):
        raise UserError(f"cannot read {path}: it is a device")


def python_manual():
    """Return the language reference that ``help()`` shows, each paragraph once."""
    try:
        from pydoc_data.topics import topics
    except ImportError:
        raise UserError("this Python has no pydoc_data.topics: name a text with --text") from None
    # A fifth of it is printed under several topics: without this the held-out part would not be
    # new to the model.
    paragraphs = "\n\n".join(topics[name].strip("\n") for name in sorted(topics)).split("\n\n")
    return "\n\n".join(dict.fromkeys(paragraphs))


def alphabet_of(text):
    """Return the text's characters, each once, sorted: character ``k`` has the number k."""
    return "".join(sorted(set(text)))


def encode(text, alphabet):
    """Return the text as a LongTensor (characters). Raises UserError for a foreign character."""
    number = {character: k for k, character in enumerate(alphabet)}
    foreign = sorted(set(text) - set(number))
    if foreign:
        raise UserError(
            f"the text has {counted(len(foreign), 'character')} that the checkpoint's alphabet "
            f"lacks, such as {foreign[0]!r}: load it with the text it was trained on, or train anew"
        )
    return torch.tensor([number[character] for character in text], dtype=torch.long)


def split(codes, batch, window):
    """Return (training part, held-out part) of ``codes``. Raises UserError for a short text."""
    kept = len(codes) - int(len(codes) * HELD_OUT)
    # Every row of the batch needs one whole window, and each input a next character to predict.
    if kept < batch * window + 1 or len(codes) - kept < 2:
        needed = max(int((batch * window + 1) / (1 - HELD_OUT)) + 1, int(2 / HELD_OUT))
        raise UserError(
            f"the text is too short: {counted(len(codes), 'character')}, while a batch of "
            f"{counted(batch, 'window')} of {window} needs {needed}; "
            "give a longer text, or a smaller --batch or --window"
        )
    return codes[:kept], codes[kept:]


def windows(codes, batch, window):
    """Cut text into ``batch`` parallel rows and yield it window by window, as (inputs, targets).

    Both are (T, B) with T = window, or less in the last one. Column b of a window goes on where
    column b of the window before ended, so a recurrent state can be carried from one to the next.
    Targets are the inputs shifted by one: the next character.
    """
    length = (len(codes) - 1) // batch
    inputs = codes[: batch * length].view(batch, length).t()
    targets = codes[1 : batch * length + 1].view(batch, length).t()
    return list(zip(inputs.split(window), targets.split(window)))

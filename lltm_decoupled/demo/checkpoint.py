"""Checkpoints: everything a training needs to go on, in one file that is never half written."""

import contextlib
import inspect
import itertools
import os
import zipfile
import zlib

import torch

from .._errors import UserError
from .._outputs import check_replaceable as check_kind
from .._outputs import start_of

FORMAT = "lltm_decoupled demo 2"
OURS = b"lltm_decoupled demo"  # of every format
KEYS = {"format", "settings", "alphabet", "text", "model", "optimizer", "step", "state"}


def companions(path):
    """Return the other files that are written for a checkpoint."""
    return [previous(path), unfinished(path), f"{path}.damaged", damaged(path)]


def check_replaceable(path, itself=True):
    """Raise UserError where something other than earlier checkpoints would be written over."""
    for earlier in ([path] if itself else []) + [previous(path)]:
        check_kind(earlier, "checkpoint of this demo", _is_checkpoint)
    check_kind(unfinished(path), "part of a checkpoint", _is_part)


def _is_checkpoint(path):
    """It is not loaded for that: an old torch would run code that such a file holds."""
    # A strange zip file raises what it likes.
    with contextlib.suppress(Exception), zipfile.ZipFile(path) as file:
        pickles = [name for name in file.namelist() if name.endswith("/data.pkl")]
        return any(OURS in file.read(name) for name in pickles)
    return False


def _is_part(path):
    return start_of(path).startswith(b"PK")  # as every zip file starts


def fingerprint(text):
    """Return a number that tells whether a checkpoint's place in the text is one in this text."""
    return zlib.crc32(text.encode("utf-8", "surrogatepass"))


def previous(path):
    """Return where the checkpoint before the one in ``path`` is kept."""
    return f"{path}.previous"


def unfinished(path):
    """Return where a checkpoint is written before it is moved to ``path``.

    In the same folder: os.replace can't cross disks. One name: the next save clears up what a
    killed one left.
    """
    return f"{path}.tmp"


def damaged(path):
    """Return where a checkpoint that can't be read is moved: to a name that is free."""
    names = itertools.chain(
        [f"{path}.damaged"], (f"{path}.damaged.{n}" for n in itertools.count(1))
    )
    return next(name for name in names if not os.path.lexists(name))


def save(path, trainer, state, settings, alphabet, text):
    """Write a checkpoint, or leave what was there before. Raises UserError where that fails.

    ``state`` is the recurrent state of the whole batch, and ``settings`` a dict of the numbers that
    fix the model's and the windows' sizes. At every moment ``path`` or, where a disk lost it, the
    previous checkpoint is whole.
    """
    contents = {
        "format": FORMAT,
        "settings": settings,
        "alphabet": alphabet,
        "text": fingerprint(text),
        "model": trainer.model.state_dict(),
        "optimizer": trainer.optimizer.state_dict(),
        "step": trainer.step,
        "state": state,
    }
    try:
        with open(unfinished(path), "wb") as file:
            torch.save(contents, file)
            file.flush()
            os.fsync(file.fileno())
        _keep(path)
        os.replace(unfinished(path), path)
    except OSError as error:
        raise UserError(f"cannot save {path}: {error.strerror or error}") from None
    except RuntimeError:  # of torch's, about places in its file
        raise UserError(f"cannot save {path}: the disk took a part of it; is it full?") from None
    finally:
        if os.path.exists(unfinished(path)):
            os.remove(unfinished(path))


def _keep(path):
    """Give the checkpoint in ``path`` a second name; a file system that can't keeps none."""
    if os.path.exists(path):
        with contextlib.suppress(OSError):
            if os.path.exists(previous(path)):
                os.remove(previous(path))
            os.link(path, previous(path))


def load_latest(path):
    """Return (contents, None or why they are not those of ``path``) of the newest checkpoint.

    Contents are None where nothing was saved yet. Raises UserError where nothing saved can be read.
    """
    if not (os.path.exists(path) or os.path.exists(previous(path))):
        return None, None
    try:
        return load(path), None
    except UserError as error:
        if not os.path.exists(previous(path)):
            raise UserError(f"{error}, and there is no {previous(path)}") from None
        contents = load(previous(path))
        # Out of the way, or the next save would keep it in the place of the good one.
        if os.path.exists(path):
            os.replace(path, damaged(path))
        return contents, error


def load(path):
    """Return a checkpoint's contents, on the CPU. Raises UserError for anything else."""
    try:
        with open(path, "rb") as file:
            contents = torch.load(file, map_location="cpu", **_safely())
    except OSError as error:
        raise UserError(f"cannot load {path}: {error.strerror}") from None
    except Exception:  # what torch.load raises for a strange file is not specified
        raise UserError(f"{path} is no checkpoint, or it is damaged") from None
    if not isinstance(contents, dict) or contents.get("format") != FORMAT:
        raise UserError(f"{path} is no checkpoint of this demo")
    if not KEYS <= set(contents):
        raise UserError(f"{path} is damaged: it lacks {', '.join(sorted(KEYS - set(contents)))}")
    return contents


def restore(contents, trainer, settings, text, path):
    """Give ``trainer`` the weights, the optimizer's state and, in the same text, the place.

    However many processes saved it, each takes the state of its own rows.
    """
    try:
        trainer.model.load_state_dict(contents["model"])
        trainer.optimizer.load_state_dict(contents["optimizer"])
    except (RuntimeError, ValueError, KeyError) as error:
        raise UserError(f"{path} does not fit this model: {error}") from None
    trainer.step = contents["step"]
    rows_match = all(contents["settings"][key] == settings[key] for key in ("batch", "window"))
    if rows_match and contents["text"] == fingerprint(text) and contents["state"] is not None:
        trainer.take_state(contents["state"])


def _safely():
    # torch 1.13 learnt to load tensors and plain values only, and 2.0 that floats are plain too. An
    # older one unpickles any object, so there, load only files that you trust.
    known = "weights_only" in inspect.signature(torch.load).parameters
    known = known and int(torch.__version__.split(".")[0]) >= 2
    return {"weights_only": True} if known else {}

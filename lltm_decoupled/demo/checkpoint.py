"""Checkpoints: everything a training needs to go on, in one file that is never half written."""

import contextlib
import inspect
import os
import zipfile
import zlib

import torch

from ..cli import UserError

FORMAT = "lltm_decoupled demo 2"
KEYS = {"format", "settings", "alphabet", "text", "model", "optimizer", "step", "state"}


def check_writable(path):
    """Raise UserError now rather than after the training, where ``path`` can't be saved to."""
    folder = os.path.dirname(os.path.abspath(path))
    if not os.path.isdir(folder):
        raise UserError(f"cannot save {path}: there is no folder {folder}")
    if os.path.exists(path) and not os.path.isfile(path):
        raise UserError(f"cannot save {path}: it is there and is no file")
    if not os.access(folder, os.W_OK):
        raise UserError(f"cannot save {path}: the folder {folder} is not writable")


def companions(path):
    """Return the other files that are written for a checkpoint."""
    return [previous(path), f"{path}.tmp", f"{path}.damaged"]


def check_replaceable(path):
    """Raise UserError where ``path`` is something other than an earlier checkpoint.

    It is not loaded for that: an old torch would run code that such a file holds.
    """
    if not os.path.exists(path) or os.path.getsize(path) == 0:
        return
    is_checkpoint = False
    with contextlib.suppress(zipfile.BadZipFile, OSError), zipfile.ZipFile(path) as file:
        is_checkpoint = any(name.endswith("/data.pkl") for name in file.namelist())
    if not is_checkpoint:
        raise UserError(f"cannot save {path}: it is there and is no checkpoint")


def fingerprint(text):
    """Return a number that tells whether a checkpoint's place in the text is one in this text."""
    return zlib.crc32(text.encode("utf-8", "surrogatepass"))


def previous(path):
    """Return where the checkpoint before the one in ``path`` is kept."""
    return f"{path}.previous"


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
    # In the same folder: os.replace can't cross disks. One name: the next save clears up what a
    # killed one left.
    unfinished = f"{path}.tmp"
    try:
        with open(unfinished, "wb") as file:
            torch.save(contents, file)
            file.flush()
            os.fsync(file.fileno())
        _keep(path)
        os.replace(unfinished, path)
    except (OSError, RuntimeError) as error:
        raise UserError(f"cannot save {path}: {error}") from None
    finally:
        if os.path.exists(unfinished):
            os.remove(unfinished)


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
            os.replace(path, f"{path}.damaged")
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

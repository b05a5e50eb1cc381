"""The files that a command writes: checked before its work, and never put over something else."""

import contextlib
import os

from ._errors import UserError


def check_writable(path):
    """Raise UserError now rather than after the work, where ``path`` can't be written."""
    folder = os.path.dirname(os.path.abspath(path))
    if not os.path.isdir(folder):
        raise UserError(f"cannot save {path}: there is no folder {folder}")
    if os.path.exists(path) and not os.path.isfile(path):
        raise UserError(f"cannot save {path}: it is there and is no file")
    try:  # what no question tells: a name that is too long, a file system that takes no files
        with open(_beside(path), "xb"):
            pass
        os.remove(_beside(path))
    except OSError as error:
        raise UserError(f"cannot save {path}: {error.strerror or error}") from None


def check_apart(written):
    """Raise UserError where two options would write one file: {option: the paths it writes}."""
    owners = {}
    for option, paths in written.items():
        for path in paths:
            owner = owners.setdefault(real(path), option)
            if owner != option:
                raise UserError(f"{owner} and {option} need a file each: both would write {path}")


def check_replaceable(path, kind, is_kind):
    """Raise UserError where ``path`` is there, is not empty, and ``is_kind(path)`` is false."""
    if not os.path.exists(path):
        return
    replaceable = False
    with contextlib.suppress(OSError):
        replaceable = os.path.isfile(path) and (os.path.getsize(path) == 0 or is_kind(path))
    if not replaceable:
        raise UserError(f"cannot save {path}: it is there and is no {kind}")


def check_picture_replaceable(path):
    """Raise UserError where ``path`` is something other than a picture of a kind that we draw."""
    check_replaceable(path, "picture", _is_picture)


def _is_picture(path):
    start = start_of(path)
    is_svg = start.startswith((b"<?xml", b"<svg")) and b"<svg" in start
    return is_svg or start.startswith((b"\x89PNG\r\n\x1a\n", b"%PDF-"))


def start_of(path):
    """Return the first bytes of a file, as many as tell its kind."""
    with open(path, "rb") as file:
        return file.read(1000)


def real(path):
    """Return the one name of a file that has several by links and by upper case."""
    return os.path.normcase(os.path.realpath(path))


@contextlib.contextmanager
def replacing(path):
    """Give the name of a file that takes the place of ``path`` once it is whole.

    So no disk that is full leaves a part of it. Raises UserError as :func:`told`.
    """
    path = os.path.realpath(path)  # of a link what it leads to
    with told(path):
        try:
            yield _beside(path)
            os.replace(_beside(path), path)
        finally:
            with contextlib.suppress(OSError):
                os.remove(_beside(path))


def _beside(path):
    """In the same folder, as a file can't be moved to another disk at once."""
    return f"{path}.{os.getpid()}.tmp"


@contextlib.contextmanager
def told(path):
    """Within this context an OSError is raised as the UserError that ``path`` can't be written."""
    try:
        yield
    except OSError as error:
        raise UserError(f"cannot write {path}: {error.strerror or error}") from None

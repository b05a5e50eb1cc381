"""The curve of a training: a JSON line for each update in a file, and a picture of it."""

import contextlib
import json
import math
import os

from .._errors import UserError
from .._outputs import check_replaceable as check_kind
from .._outputs import replacing, start_of, told
from . import distributed

KEYS = {"step", "loss", "bits", "samples_per_second", "processes", "seconds"}
PICTURES = (".png", ".svg", ".pdf")


class Curve:
    """A training's updates: as points (step, bits) to draw, and written to a file line by line.

    ``step`` counts the updates of the whole training, ``loss`` (natural logarithm) and ``bits`` are
    the mean over the batch, a sample is one row of it, and ``seconds`` were spent on updates so
    far, also before the training was stopped and resumed.
    """

    def __init__(self, path=None, step=0):
        """Go on after ``step``: later lines, of updates that are made once more, are dropped.

        ``path`` None means no file; step 0 means a new one. Raises UserError where ``path`` can't
        be written or holds something else.
        """
        self.path, self.file, self.mistake = path, None, None
        known = [u for u in read(path) if u["step"] <= step] if path and step else []
        self.points = [(update["step"], update["bits"]) for update in known]
        self.before = known[-1]["seconds"] if known else 0.0
        self.seconds = 0.0
        if path:
            with told(path):
                self.file = _open(path, known)

    def add(self, step, loss, seconds, samples):
        """Take in an update that ended ``seconds`` after the start of this run.

        ``mistake`` is why the file can't be written any more, or None. It is not raised here, where
        it would lose the training and let the other processes wait for this one.
        """
        bits = loss / math.log(2)
        self.points.append((step, bits))
        if self.file and not self.mistake:
            update = {
                "step": step,
                "loss": loss,
                "bits": bits,
                "samples_per_second": round(samples / max(seconds - self.seconds, 1e-9), 1),
                "processes": distributed.count(),
                "seconds": round(self.before + seconds, 4),
            }
            self._try(self.file.write, _line(update))
        self.seconds = seconds

    def close(self):
        if self.file:
            self._try(self.file.close)

    def check(self):
        """Raise the UserError of a line that could not be written."""
        if self.mistake:
            raise self.mistake

    def _try(self, action, *arguments):
        try:
            with told(self.path):
                action(*arguments)
        except UserError as error:
            self.mistake = self.mistake or error


def _open(path, updates):
    (unfinished,) = companions(path)
    try:
        with open(unfinished, "w", encoding="utf-8") as file:
            file.writelines(map(_line, updates))
        os.replace(unfinished, path)
    except OSError:
        with contextlib.suppress(OSError):
            os.remove(unfinished)
        raise
    # By lines: when the process is killed all updates are there, at most the last one in part.
    return open(path, "a", encoding="utf-8", buffering=1)


def _line(update):
    return json.dumps(update) + "\n"


def read(path):
    """Return a file's lines as dicts, without a last one that was half written.

    A file that is not there has none. Raises UserError for a file of another kind.
    """
    if not os.path.exists(path):
        return []
    try:
        with open(path, encoding="utf-8") as file:
            lines = file.read().split("\n")[:-1]
        updates = [json.loads(line) for line in lines]
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror}") from None
    except ValueError:
        raise UserError(f"{path} is no metrics file of this demo") from None
    if not all(isinstance(update, dict) and KEYS <= set(update) for update in updates):
        raise UserError(f"{path} is no metrics file of this demo")
    return updates


def companions(path):
    """Return the other files that are written for a metrics file."""
    return [f"{path}.tmp"]


def check_replaceable(path):
    """Raise UserError where something other than earlier metrics would be written over."""
    for earlier in [path, *companions(path)]:
        check_kind(earlier, "metrics file of this demo", _is_metrics)


def _is_metrics(path):
    with contextlib.suppress(UserError):
        read(path)
        return start_of(path).startswith(b"{")  # of a killed training a part of one line may be all
    return False


def check_drawable(path):
    """Raise UserError now rather than after the training, where ``path`` can't be drawn."""
    _canvas()
    if os.path.splitext(path)[1].lower() not in PICTURES:
        raise UserError(f"cannot draw {path}: its name has to end in .png, .svg or .pdf")


def draw(path, points):
    """Draw points (step, bits). Raises UserError where that fails."""
    canvas = _canvas()
    axes = canvas.figure.add_subplot()
    axes.plot([step for step, _ in points], [bits for _, bits in points], linewidth=0.8)
    axes.set_xlabel("updates")
    axes.set_ylabel("training loss, bits per character")
    axes.grid(alpha=0.3)
    with replacing(path) as whole:
        canvas.figure.savefig(whole, dpi=150, format=os.path.splitext(path)[1][1:].lower())


def _canvas():
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError:
        raise UserError("--plot needs matplotlib: pip install matplotlib") from None
    return FigureCanvasAgg(Figure())  # no window, whatever the user's settings

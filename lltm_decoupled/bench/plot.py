"""Draws microseconds a step over the state size and over the batch size."""

import importlib
import os

from .._errors import UserError
from .._outputs import replacing


def need_matplotlib():
    """Return it, without a window. Raises UserError where it is absent."""
    try:
        matplotlib = importlib.import_module("matplotlib")
    except ImportError:
        raise UserError(
            "--plot needs matplotlib: pip install matplotlib, or lltm_decoupled[plot]"
        ) from None
    matplotlib.use("Agg")
    return importlib.import_module("matplotlib.pyplot")


def draw(rows, machine, path):
    """Write a PNG: a row of two axes for each of cell and layer, dtype and pass."""
    pyplot = need_matplotlib()
    rows = [row for row in rows if row["us"]]
    kinds = list(dict.fromkeys((row["what"], row["dtype"], row["pass"]) for row in rows))
    if not kinds:
        raise UserError("nothing was measured that could be plotted")
    names = list(dict.fromkeys(row["contender"] for row in rows))
    shape = (11, 3.6 * len(kinds))
    figure, axes = pyplot.subplots(len(kinds), 2, figsize=shape, squeeze=False)
    for kind, pair in zip(kinds, axes):
        of_kind = [row for row in rows if (row["what"], row["dtype"], row["pass"]) == kind]
        for axis, over, fixed in zip(pair, "HB", "BH"):
            _draw_axis(axis, of_kind, over, fixed, names)
            axis.set_title(f"{', '.join(kind)}; {axis.get_title()}", fontsize=9)
    handles = {}
    for axis in axes.flat:
        handles.update({label: h for h, label in zip(*axis.get_legend_handles_labels())})
    figure.legend(handles.values(), handles.keys(), loc="upper right", fontsize=8)
    figure.suptitle(f"{machine['device']}, torch {machine['torch']}", x=0.02, ha="left", fontsize=9)
    figure.tight_layout(rect=(0, 0, 0.86, 0.98))
    with replacing(path) as whole:
        figure.savefig(whole, dpi=120, format=os.path.splitext(path)[1][1:].lower())
    pyplot.close(figure)


def _draw_axis(axis, rows, over, fixed, names):
    """Lines over one size, at that value of the other for which there are most points."""
    points = {}
    for row in rows:
        points.setdefault(row[fixed], set()).add(row[over])
    at = max(points, key=lambda value: len(points[value]))
    for number, name in enumerate(names):
        found = {r[over]: r for r in rows if r["contender"] == name and r[fixed] == at}
        if not found:
            continue
        places = sorted(found)
        spread = [
            [found[p]["us"] - found[p]["us_low"], found[p]["us_high"] - found[p]["us"]]
            for p in places
        ]
        axis.errorbar(
            places,
            [found[place]["us"] for place in places],
            yerr=list(zip(*spread)),
            color=f"C{number}",
            marker="o",
            markersize=3,
            linewidth=2.5 if name.startswith("ours") else 1.2,
            linestyle="--" if name.endswith("-graph") else "-",
            label=name,
        )
    axis.set_xscale("log", base=2)
    axis.set_yscale("log")
    axis.set_xticks(sorted(points[at]))
    axis.set_xticklabels(sorted(points[at]))
    axis.set_xlabel(over)
    axis.set_ylabel("us a step")
    axis.set_title(f"{fixed} = {at}")
    axis.grid(True, which="major", alpha=0.3)

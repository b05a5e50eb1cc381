"""Time the cell and the layer against what PyTorch and other libraries have, on this machine.

A time is that of one call from Python, with a synchronisation after it. Contenders take turns, so
that a busy machine is as busy for each. What this machine lacks is left out, and one line says why.
The exit code is 1 if ours could not be measured.
"""

from .._arguments import counted
from .._errors import UserError
from . import machine, options, plot, report, stages, timing
from .measure import benchmark, chosen
from .options import add_arguments

__all__ = ["add_arguments", "run"]


def run(args):
    """Measure, print and write; return 0, or 1 where ours failed. Raises UserError."""
    if args.stages:
        return stages.run(args)
    settings = options.pick(args)
    facts = machine.describe(settings.device, settings.threads)
    print(machine.in_words(facts))
    print(report.LEGEND)
    rows, absent = [], {}
    try:
        with machine.prepared(settings.device, settings.threads, settings.tf32):
            for what in settings.whats:
                contenders, absent[what] = chosen(what, settings)
                show(what, settings, contenders, absent[what], rows)
    finally:  # Ctrl-C keeps what was measured
        report.write(args, facts, rows, left_out=absent)
    if args.plot:
        plot.draw(rows, facts, args.plot)
    return 1 if any(row["error"] for row in rows if row["contender"] == "ours") else 0


def show(what, settings, contenders, absent, rows):
    """Print the table of a cell or a layer as it grows, and add to the rows."""
    for reason in dict.fromkeys(absent.values()):
        names = ", ".join(name for name in absent if absent[name] == reason)
        print(f"left out of the {what}s: {names}: {reason}")
    for dtype in settings.dtypes:
        kind = "TF32" if settings.tf32 else str(dtype).replace("torch.", "")
        steps = f", {counted(settings.steps, 'step')}" if what == "layer" else ""
        print(f"\n{what}, {kind}{steps}\n{report.HEADER}")
        for size in settings.sizes_of(what):
            try:
                for row in benchmark(what, size, dtype, settings, contenders):
                    rows.append(row)
                    print(report.line(row))
            except RuntimeError as error:  # no memory, or a contender left the GPU unusable
                place = f"{what}, {kind}, {size}"
                raise UserError(f"cannot go on at {place}: {timing.in_a_line(error)}") from None

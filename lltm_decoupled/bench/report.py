"""The results as lines of a table, as JSON and as CSV."""

import contextlib
import csv
import json

from .._outputs import replacing, start_of

HEADER = (
    f"{'B, I, H':16} {'pass':17} {'contender':15} {'us a step':>10} {'spread':>8} "
    f"{'x ours':>7} {'a gate':>7}"
)
LEGEND = (
    "us a step: the median of all calls after a warm-up; spread: between the quartiles;\n"
    "x ours: times what ours takes, in a CUDA graph times ours in one; a gate: the same for three\n"
    "gates, of which an LSTM has four"
)


def line(row):
    """One row of the table."""
    size = "{B}, {I}, {H}".format(**row)
    start = f"{size:16} {row['pass']:17} {row['contender']:15} "
    if row["error"]:
        return start + f"failed: {row['error']}"
    return start + (
        f"{row['us']:10.2f} {row['us_high'] - row['us_low']:8.2f} "
        f"{_number(row['times_ours']):>7} {_number(row['times_ours_per_gate']):>7}"
    )


def _number(ratio):
    return "-" if ratio is None else f"{ratio:.2f}"


def write(args, machine, rows, **more):
    """Write the files that were asked for, of however much was measured. Raises UserError."""
    with contextlib.ExitStack() as each:  # one that can't be written does not keep the other back
        if args.json:
            each.callback(_write_json, args.json, {"machine": machine, **more, "rows": rows})
        if args.csv and rows:
            about = {"device": machine["device"], "torch": machine["torch"]}
            each.callback(_write_csv, args.csv, [{**about, **row} for row in rows])


def _write_json(path, document):
    with replacing(path) as whole, open(whole, "w", encoding="utf-8") as file:
        json.dump(document, file, indent=1)
        file.write("\n")


def _write_csv(path, rows):
    with replacing(path) as whole, open(whole, "w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows(rows)


def is_json(path):
    """Whether a file starts as what :func:`write` writes, be it only the part that a disk took."""
    return b"".join(start_of(path).split()).startswith(b'{"machine":{"device":')


def is_csv(path):
    """As :func:`is_json`."""
    return start_of(path).startswith(b"device,torch,")

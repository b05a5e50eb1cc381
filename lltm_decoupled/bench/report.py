"""The results as lines of a table, as JSON and as CSV."""

import csv
import json

HEADER = (
    f"{'B, I, H':16} {'pass':17} {'contender':15} {'us a step':>10} {'spread':>8} "
    f"{'x ours':>7} {'a gate':>7}"
)
LEGEND = (
    "us a step: the median of all calls; spread: between the quartiles; x ours: times what ours "
    "takes,\nin a CUDA graph times ours in one; a gate: the same for three gates, of which an LSTM "
    "has four"
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
    """Write the files that were asked for, of however much was measured."""
    if args.json:
        with open(args.json, "w", encoding="utf-8") as file:
            json.dump({"machine": machine, **more, "rows": rows}, file, indent=1)
            file.write("\n")
    if args.csv and rows:
        with open(args.csv, "w", encoding="utf-8", newline="") as file:
            about = {"device": machine["device"], "torch": machine["torch"]}
            writer = csv.DictWriter(file, [*about, *(key for key in rows[0] if key not in about)])
            writer.writeheader()
            writer.writerows({**about, **row} for row in rows)

"""`make matrix`: builds, imports and tests every supported torch, each in its own environment.

    python toolchains/matrix.py [torch ...]        all rows, or those named: 1.11.0 newest

A row copies the checkout to $LLTM_TOOLCHAINS/matrix/<torch> (default: .toolchains, which git
ignores) and runs this repository's own Makefile there, so that it proves what a user types. What
cannot be had here, an interpreter or a torch, is a skip with its reason; LLTM_REQUIRE_TOOLCHAINS=1
makes it a failure.
"""

import os
import re
import shutil
import subprocess
import sys
import time
import xml.etree.ElementTree as ET
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.append(str(ROOT / "tests"))
from repository import copy_sources  # noqa: E402

WORK = Path(os.environ.get("LLTM_TOOLCHAINS") or ROOT / ".toolchains").resolve() / "matrix"
REQUIRED = os.environ.get("LLTM_REQUIRE_TOOLCHAINS") == "1"

# torch -> the Pythons that it has wheels for and that are tried, best first
ROWS = {
    "1.11.0": ("3.10",),
    "1.13.1": ("3.10",),
    "2.0.1": ("3.11", "3.10"),
    "2.4.1": ("3.12", "3.11"),
    "2.13.0": ("3.11", "3.12", "3.13"),
    "newest": ("3.11", "3.12", "3.13"),
}
COLUMNS = "torch python C++ CUDA install/s build/s test/s passed skipped failed result".split()


def output_of(*command):
    """What it prints, "" if it fails or is not there."""
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    except OSError:
        return ""
    return done.stdout.decode("utf-8", errors="replace").strip() if done.returncode == 0 else ""


def find_python(versions):
    """The first that runs and can make an environment. A shim on PATH may do neither."""
    pyenv = output_of("pyenv", "root")
    for version in versions:
        found = sorted(Path(pyenv, "versions").glob(version + ".*/bin/python")) if pyenv else []
        on_path = shutil.which("python" + version)
        for python in [*map(str, reversed(found)), *([on_path] if on_path else [])]:
            seen = output_of(
                python, "-c", "import ensurepip, venv, platform as p; print(p.python_version())"
            )
            if seen.startswith(version + "."):
                return python, seen
    return None, None


def copy_checkout(target):
    """Only what changed, so that a second run recompiles only that."""
    fresh = target.with_name(target.name + ".fresh")
    shutil.rmtree(str(fresh), ignore_errors=True)
    copy_sources(fresh)
    for kept in (".venv", "build"):
        if (target / kept).is_dir():
            shutil.move(str(target / kept), str(fresh / kept))
    for binary in (target / "lltm_decoupled").glob("_C*.so"):
        shutil.move(str(binary), str(fresh / "lltm_decoupled"))
    shutil.rmtree(str(target), ignore_errors=True)
    fresh.rename(target)


class Row:
    def __init__(self, name):
        self.name = name
        self.cells = dict.fromkeys(COLUMNS, "-")
        self.cells["torch"] = name
        self.folder = WORK / name / "checkout"
        self.log = WORK / name / "log.txt"

    def step(self, column, log, *arguments):
        """One make in the copy; True if it succeeded."""
        env = {k: v for k, v in os.environ.items() if k not in ("VIRTUAL_ENV", "PYTHONPATH")}
        env.update(PIP_QUIET="1", PIP_DISABLE_PIP_VERSION_CHECK="1")
        for name in ("MAKEFLAGS", "MAKELEVEL", "MFLAGS", "MAKEOVERRIDES"):
            env.pop(name, None)
        start = time.time()
        command = ["make", "PYTHON=" + self.python, "TORCH=" + self.requirement, *arguments]
        log.write(f"$ {' '.join(command)}\n")
        log.flush()
        done = subprocess.run(
            command, cwd=str(self.folder), env=env, stdin=subprocess.DEVNULL, stdout=log, stderr=log
        )
        self.cells[column] = f"{time.time() - start:.0f}"
        return done.returncode == 0

    def last_line(self, pattern):
        lines = self.log.read_text(encoding="utf-8", errors="replace").splitlines()
        return next((line.strip() for line in reversed(lines) if re.search(pattern, line)), "?")

    def run(self):
        self.python, version = find_python(ROWS[self.name])
        if self.python is None:
            return "skip", "no Python " + " or ".join(ROWS[self.name])
        print(f"torch {self.name}: Python {version}, {self.python}", flush=True)
        self.cells["python"] = version
        self.requirement = "torch" if self.name == "newest" else "torch==" + self.name
        copy_checkout(self.folder)
        with open(str(self.log), "w", encoding="utf-8") as log:
            if not self.step("install/s", log, ".venv/stamps/target"):
                return "skip", "cannot be installed: " + self.last_line(r"ERROR|rror:")
            self.cells["torch"] = output_of(
                str(self.folder / ".venv/bin/python"),
                "-c",
                "import torch; print(torch.__version__)",
            )
            if not self.step("build/s", log, ".venv/stamps/built"):
                return "FAILED", f"build: see {self.log}"
            self.describe_build()
            report = self.folder.parent / "report.xml"
            passed = self.step("test/s", log, "test", f"ARGS=-q -rs --junitxml={report}")
        if report.exists():
            self.count(report)
        return ("ok", "") if passed else ("FAILED", f"tests: see {self.log}")

    def describe_build(self):
        """The language level that torch chose, and whether the kernels are in."""
        rules = "".join(p.read_text() for p in (self.folder / "build").rglob("build.ninja"))
        levels = set(re.findall(r"-std=\S+", rules))
        self.cells["C++"] = " ".join(sorted(level[5:] for level in levels)) or "default"
        self.cells["CUDA"] = "yes" if ".cu\n" in rules else "no"

    def count(self, report):
        suite = next(ET.parse(str(report)).getroot().iter("testsuite"))
        counts = {key: int(suite.get(key)) for key in ("tests", "errors", "failures", "skipped")}
        failed = counts["errors"] + counts["failures"]
        self.cells.update(skipped=str(counts["skipped"]), failed=str(failed))
        self.cells["passed"] = str(counts["tests"] - failed - counts["skipped"])


def main(names):
    unknown = set(names) - set(ROWS)
    if unknown:
        raise SystemExit(f"no such row: {', '.join(unknown)}; there are {', '.join(ROWS)}")
    rows, bad = [], 0
    for name in names or ROWS:
        row = Row(name)
        row.log.parent.mkdir(parents=True, exist_ok=True)
        start = time.time()
        result, reason = row.run()
        row.cells["result"] = result
        rows.append(row)
        bad += result == "FAILED" or (result == "skip" and REQUIRED)
        print(f"torch {name}: {result} in {time.time() - start:.0f} s {reason}", flush=True)
    table = [COLUMNS, *([row.cells[column] for column in COLUMNS] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*table)]
    print()
    for line in table:
        print("  ".join(cell.ljust(width) for cell, width in zip(line, widths)).rstrip())
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

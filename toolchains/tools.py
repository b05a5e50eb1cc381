"""What the checks of foreign toolchains share: where `install.py` put things, and how to skip."""

import functools
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
for folder in (ROOT, ROOT / "tests"):
    if str(folder) not in sys.path:
        sys.path.append(str(folder))

from repository import files, run  # noqa: E402
from test_core_alone import TORCH_NVCC_DEFINES  # noqa: E402,F401

CACHE = Path(os.environ.get("LLTM_TOOLCHAINS") or ROOT / ".toolchains").resolve()
STANDINS = ROOT / "toolchains" / "standins"
HOSTS = ROOT / "toolchains" / "hosts"
CORE = ROOT / "cuda_core"
CUDA_SOURCES = files("cuda_core", suffixes=(".cu",))
HOST_SOURCES = files("cuda_core", suffixes=(".cpp",))

MINGW = "x86_64-w64-mingw32-"


def missing(reason):
    """Skips the test with its reason, or fails it if LLTM_REQUIRE_TOOLCHAINS promises the tools."""
    if os.environ.get("LLTM_REQUIRE_TOOLCHAINS") == "1":
        pytest.fail(f"LLTM_REQUIRE_TOOLCHAINS=1, but {reason}")
    pytest.skip(f"{reason} (make toolchains installs what it can)")


def program(*names):
    """The first of these programs on PATH."""
    found = next((path for path in map(shutil.which, names) if path), None)
    return found or missing(f"no {' or '.join(names)} on PATH")


def package(name, path="."):
    """A path in a package that `install.py` unpacked."""
    folder = CACHE / name
    if not (folder / "complete").exists():
        missing(f"{name} is not in {CACHE}")
    return folder / path


def succeed(*command, **options):
    status, output = run(*command, **options)
    assert status == 0, output
    return output


@functools.lru_cache(maxsize=None)
def wine_environment():
    """Its own prefix: nobody's settings are touched."""
    prefix = CACHE / "wine"
    if not (prefix / "system.reg").exists():
        missing(f"no wine prefix in {prefix}")
    env = {"WINEPREFIX": str(prefix), "WINEDEBUG": "-all", "WINEARCH": "win64"}
    # Stays for half a minute without work: starting it is most of the time of a small program.
    nothing = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL}
    command = [program("wineserver"), "-p30"]
    subprocess.run(command, env=dict(os.environ, **env), stderr=subprocess.DEVNULL, **nothing)
    return env


def wine(*command, cwd=ROOT):
    """(exit status, output) of a Windows program.

    By way of a file: the first program starts servers, which inherit a pipe and keep it open.
    """
    with tempfile.TemporaryFile() as output:
        done = subprocess.run(
            [program("wine"), *map(str, command)],
            cwd=str(cwd),
            env=dict(os.environ, **wine_environment()),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
        )
        output.seek(0)
        return done.returncode, output.read().decode("utf-8", errors="replace")

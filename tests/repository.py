"""Where the sources are, and running programs on them; for the tests of the repository itself."""

import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SOURCE_FOLDERS = (
    "cuda_core",
    "bindings",
    "lltm_decoupled",
    "build_support",
    "benchmarks",
    "tests",
    "docs",
    "examples",
    "toolchains",
)
NOT_SOURCES = shutil.ignore_patterns(
    "__pycache__",
    "*.py[cod]",
    "*.so",
    "*.pyd",
    "*.o",
    "*.egg-info",
    ".git",
    ".venv*",
    "build",
    "dist",
)

if str(ROOT) not in sys.path:
    sys.path.append(str(ROOT))  # at the end: an installed lltm_decoupled goes first


def copy_sources(target):
    """A clean checkout's files, without what builds and a log of them left behind."""
    target.mkdir(parents=True)
    for folder in SOURCE_FOLDERS:
        shutil.copytree(str(ROOT / folder), str(target / folder), ignore=NOT_SOURCES)
    for path in ROOT.iterdir():
        # .git is a worktree's pointer.
        if path.is_file() and path.suffix not in (".so", ".log") and path.name != ".git":
            shutil.copy2(str(path), str(target))
    if (ROOT / ".ci").is_dir():
        shutil.copytree(str(ROOT / ".ci"), str(target / ".ci"))
    return target


def files(*folders, suffixes):
    """Relative posix paths of the sources under folders, sorted."""
    found = []
    for folder in folders:
        for path in (ROOT / folder).rglob("*"):
            if path.suffix in suffixes and "__pycache__" not in path.parts:
                found.append(path.relative_to(ROOT).as_posix())
    return sorted(found)


def cxx_files(*folders):
    """The library's, or those of the folders that are named."""
    folders = folders or ("cuda_core", "bindings")
    return files(*folders, suffixes=(".h", ".c", ".cpp", ".cu", ".cuh"))


def read(path):
    return (ROOT / path).read_text(encoding="utf-8")


def tool(name):
    """The program of this environment, activated or not, else the one on PATH, else None."""
    return shutil.which(name, path=sysconfig.get_path("scripts")) or shutil.which(name)


def why_no_compiler():
    """None where torch can compile C++, else the reason why not."""
    compiler = os.environ.get("CXX", "cl" if sys.platform == "win32" else "c++")
    return None if shutil.which(compiler) else f"no C++ compiler: {compiler}"


def run(*command, cwd=ROOT, env=None):
    """(exit status, everything it printed)."""
    done = subprocess.run(
        [str(part) for part in command],
        cwd=str(cwd),
        env=dict(os.environ, **(env or {})),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    return done.returncode, done.stdout.decode("utf-8", errors="replace")

"""examples/decoupled_op builds, its own tests pass, and its guide quotes it truly."""

import os
import re
import shutil
import subprocess
import sys
import sysconfig

import pytest
import torch
from repository import NOT_SOURCES, ROOT, read, run

PROJECT = ROOT / "examples" / "decoupled_op"
GUIDE = "docs/decouple_your_own_op.md"
QUOTE = re.compile(r"<!-- (examples/\S+) -->\n```\w+\n(.*?)```", flags=re.DOTALL)


def without_continuations(text):
    """A macro's lines without the backslashes at their ends, which only the preprocessor wants."""
    return re.sub(r"[ \t]*\\?$", "", text, flags=re.MULTILINE)


def environment(**more):
    """That of a build: ninja and the compilers on PATH, nothing optimised, for it takes longer."""
    path = sysconfig.get_path("scripts") + os.pathsep + os.environ["PATH"]
    # the project is its own, and must not need this repository
    return dict(os.environ, PATH=path, CFLAGS="-O0", PYTHONPATH="", **more)


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    if not hasattr(getattr(torch, "library", None), "register_autograd"):
        pytest.skip(f"torch {torch.__version__} has no torch.library.register_autograd")
    compiler = os.environ.get("CXX", "c++")
    if shutil.which(compiler) is None:
        pytest.skip(f"no C++ compiler: {compiler}")
    pytest.importorskip("setuptools")
    copy = tmp_path_factory.mktemp("project") / "decoupled_op"
    shutil.copytree(str(PROJECT), str(copy), ignore=NOT_SOURCES)
    with_cuda = "1" if torch.cuda.is_available() else "0"
    done = subprocess.run(
        [sys.executable, "setup.py", "build_ext", "--inplace"],
        cwd=str(copy),
        env=environment(SWIGLU_WITH_CUDA=with_cuda),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    assert done.returncode == 0, done.stdout.decode(errors="replace")
    return copy


def test_its_own_tests_pass(built):
    """Against the formula, gradcheck, opcheck, compiled, mistakes."""
    status, output = run(
        sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_swiglu.py", cwd=built
    )
    assert status == 0, output
    assert "skipped" not in output and "failed" not in output


def test_the_guide_quotes_the_files():
    quotes = QUOTE.findall(read(GUIDE))
    for path, text in quotes:
        file = without_continuations(read(path))
        assert without_continuations(text) in file, f"{GUIDE} does not quote {path}:\n{text}"
    shown = {path for path, _ in quotes}
    everything = {
        path.relative_to(ROOT).as_posix()
        for path in PROJECT.rglob("*")
        if path.suffix in (".h", ".cpp", ".cu", ".py")
    }
    assert shown == everything

"""examples/decoupled_op builds, its own tests pass, and its guide quotes it truly."""

import os
import re
import shutil
import sys
import sysconfig

import pytest
import torch
from repository import NOT_SOURCES, ROOT, read, run, why_no_compiler

from build_support import probe

PROJECT = ROOT / "examples" / "decoupled_op"
GUIDE = "docs/decouple_your_own_op.md"
QUOTE = re.compile(r"<!-- (examples/\S+) -->\n```\w+\n(.*?)```", flags=re.DOTALL)


def environment():
    """That of build and test: with CUDA where there are a GPU and a toolkit, else without a GPU."""
    env = dict(
        os.environ,
        PATH=sysconfig.get_path("scripts") + os.pathsep + os.environ["PATH"],  # ninja
        CFLAGS="-O0",  # it compiles faster
        PYTHONPATH="",  # the project is its own, and must not need this repository
    )
    toolkit = probe.find_toolkit(env)[0] if torch.cuda.is_available() else None
    if toolkit is None or toolkit.missing:
        return dict(env, SWIGLU_WITH_CUDA="0", CUDA_VISIBLE_DEVICES="")
    return dict(env, SWIGLU_WITH_CUDA="1", CUDA_HOME=toolkit.home)


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    if not hasattr(getattr(torch, "library", None), "register_autograd"):
        pytest.skip(f"torch {torch.__version__} has no torch.library.register_autograd")
    if why_no_compiler():
        pytest.skip(why_no_compiler())
    pytest.importorskip("setuptools")
    copy = tmp_path_factory.mktemp("project") / "decoupled_op"
    shutil.copytree(str(PROJECT), str(copy), ignore=NOT_SOURCES)
    command = (sys.executable, "setup.py", "build_ext", "--inplace")
    status, output = run(*command, cwd=copy, env=environment())
    assert status == 0, output
    return copy


def test_its_own_tests_pass(built):
    """Against the formula, gradcheck, opcheck, compiled, mistakes."""
    command = (sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_swiglu.py")
    status, output = run(*command, cwd=built, env=environment())
    assert status == 0, output
    assert "skipped" not in output and "failed" not in output


def test_the_guide_quotes_the_files():
    quotes = QUOTE.findall(read(GUIDE))
    for path, text in quotes:
        file = read(path)
        assert text in file, f"{GUIDE} does not quote {path}:\n{text}"
    shown = {path for path, _ in quotes}
    everything = {
        path.relative_to(ROOT).as_posix()
        for path in PROJECT.rglob("*")
        if path.suffix in (".h", ".cpp", ".cu", ".py") and "build" not in path.parts
    }
    assert shown == everything

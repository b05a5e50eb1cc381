"""Importing in fresh processes (a test process has long imported torch), and what there is then."""

import ast
import inspect
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import torch

import lltm_decoupled

REPOSITORY = Path(__file__).resolve().parent.parent
PACKAGE = Path(lltm_decoupled.__file__).resolve().parent

# torch must not be needed first: `_C` cannot find torch's libraries by itself.
STATEMENTS = (
    "import lltm_decoupled",
    "import lltm_decoupled._C",
    "from lltm_decoupled import _C",
)
# What a process needs to start at all; HOME, for one, is not among it.
KEPT = ("PATH", "SYSTEMROOT", "SystemRoot", "WINDIR", "TEMP", "TMP", "LD_LIBRARY_PATH")


def run_python(code, folder, **more_environment):
    """Run `code` in a new interpreter started in `folder`, with a nearly empty environment."""
    environment = {name: os.environ[name] for name in KEPT if name in os.environ}
    environment.update(more_environment)
    return subprocess.run(
        [sys.executable, "-c", code],
        cwd=str(folder),
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def succeeds(result):
    assert result.returncode == 0, result.stdout
    return result.stdout


@pytest.mark.parametrize("statement", STATEMENTS)
def test_from_the_repository_root(statement):
    """There the source folder shadows an installed package."""
    succeeds(run_python(statement, REPOSITORY))


@pytest.mark.parametrize("statement", STATEMENTS)
def test_from_another_folder(statement, tmp_path):
    # An in-place build is not installed: there the path is the user's to give.
    code = f"import sys; sys.path.append({str(PACKAGE.parent)!r}); {statement}"
    succeeds(run_python(code, tmp_path))


def test_import_is_quiet_and_starts_nothing(tmp_path):
    """No CUDA context (it would break fork), no compiler, no file beside bytecode caches."""
    code = (
        f"import sys; sys.path.append({str(PACKAGE.parent)!r});"
        "import torch; import warnings; warnings.simplefilter('error'); import lltm_decoupled;"
        "print(torch.cuda.is_initialized(), 'torch.utils.cpp_extension' in sys.modules)"
    )
    assert succeeds(run_python(code, tmp_path)).split() == ["False", "False"]
    assert list(tmp_path.iterdir()) == []


def test_the_binary_alone_brings_the_operator_and_works(tmp_path):
    code = (
        f"import sys; sys.path.append({str(PACKAGE.parent)!r}); import lltm_decoupled._C;"
        "import torch; inputs = [torch.randn(s) for s in ((5, 3), (12, 7), 12, (5, 4), (5, 4))];"
        "print(tuple(torch.ops.lltm_decoupled.cell(*inputs)[0].shape))"
    )
    assert succeeds(run_python(code, tmp_path)).strip() == "(5, 4)"


def test_build_info():
    info = lltm_decoupled.build_info()
    assert {"cuda", "cuda_version", "archs", "torch", "compiler"} <= info.keys()
    assert isinstance(info["cuda"], bool)
    # The binary must fit the torch it runs with, or it would not have been imported.
    assert info["torch"].split("+")[0] == torch.__version__.split("+")[0]
    assert bool(info["cuda_version"]) == bool(info["archs"]) == info["cuda"]
    if info["cuda"]:
        assert torch.version.cuda, "a binary with CUDA on a torch without"
    info.clear()
    assert lltm_decoupled.build_info(), "build_info() hands out its own dict"


def binary_names():
    from lltm_decoupled import _C

    return {name for name in dir(_C) if not name.startswith("_")}


def stub_names():
    tree = ast.parse((PACKAGE / "_C.pyi").read_text(encoding="utf-8"))
    names = set()
    for node in tree.body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            names.add(node.name)
        elif isinstance(node, ast.AnnAssign):
            names.add(node.target.id)
    return {name for name in names if not name.startswith("_")}


def test_the_stub_names_what_the_binary_has():
    assert stub_names() == binary_names()


def test_typed_marker_is_installed():
    assert (PACKAGE / "py.typed").exists()


PUBLIC = (
    "LLTM lltm_cell LLTMFunction LLTMSequence lltm_sequence forward backward reference compat "
    "build_info"
).split()


def test_all_lists_the_contract():
    assert set(PUBLIC) <= set(lltm_decoupled.__all__)


@pytest.mark.parametrize("name", lltm_decoupled.__all__)
def test_every_public_name_exists_and_is_documented(name):
    value = getattr(lltm_decoupled, name)
    documentation = inspect.getdoc(value)
    assert documentation, name
    # our own text, not one that is inherited
    assert documentation not in (
        inspect.getdoc(torch.nn.Module),
        inspect.getdoc(torch.autograd.Function),
        inspect.getdoc(dict),
    )


# What takes tensors says their shapes, in words or letters: "(batch_size, input_features)", or that
# they are those of lltm_cell.
@pytest.mark.parametrize(
    "name", "LLTM lltm_cell LLTMFunction LLTMSequence lltm_sequence forward backward".split()
)
def test_tensor_functions_document_their_shapes(name):
    value = getattr(lltm_decoupled, name)
    documentation = inspect.getdoc(value) or ""
    pattern = r"\((batch_size|steps|B|T|3 ?\*? ?(state_size|H))\b[^)]*\)|[Ss]hapes.*of lltm_cell"
    assert re.search(pattern, documentation), name


@pytest.mark.parametrize("name", ["lltm_cell", "LLTM", "lltm_sequence", "LLTMSequence"])
def test_the_reference_is_documented_too(name):
    assert inspect.getdoc(getattr(lltm_decoupled.reference, name))


@pytest.mark.skipif(not os.path.exists("/proc/self/maps"), reason="reads /proc/self/maps")
def test_no_second_openmp_runtime(tmp_path):
    """Its threads would fight torch's for the same cores. Ours are torch's own, by way of torch."""
    code = """
import re, torch
def runtimes():
    with open("/proc/self/maps") as file:
        return set(re.findall(r"\\S*lib(?:gomp|iomp|omp)\\S*", file.read()))
before = runtimes()
import lltm_decoupled
x, h = torch.zeros(64, 8), torch.zeros(64, 1024)
lltm_decoupled.LLTM(8, 1024)(x, (h, h))
assert runtimes() == before, (before, runtimes())
"""
    done = run_python(code, tmp_path, PYTHONPATH=str(PACKAGE.parent))
    assert done.returncode == 0, done.stdout

"""Types: a user's program passes mypy --strict, wrong uses do not, and _C.pyi tells the truth."""

import ast
import re
import runpy
import sys

import pytest
import torch
from repository import ROOT, read, run, tool

from lltm_decoupled import _native

USER_PROGRAM, WRONG_USES = "tests/typed/user_program.py", "tests/typed/wrong_uses.py"
MODULES = "__init__ cell compat reference sequence _arguments _layer _layer_parameters _module"
PUBLIC = [f"lltm_decoupled/{name}.py" for name in [*MODULES.split(), "_native"]]
TORCH = tuple(map(int, torch.__version__.split(".")[:2]))


def run_mypy(folder):
    """What it says, a list of lines, about everything that is checked."""
    program = tool("mypy")
    if program is None:
        pytest.skip("no mypy: pip install -e '.[test]', with Python 3.10 or newer")
    status, output = run(
        program,
        *("--strict", "--show-error-codes", "--no-color-output", "--no-error-summary"),
        # what is installed is nobody's fault here; and torch is that of these tests
        *("--follow-imports=silent", "--python-executable", sys.executable),
        *("--cache-dir", folder, USER_PROGRAM, WRONG_USES, *PUBLIC),
    )
    assert status == 1, output  # for the wrong uses
    return output.replace("\\", "/").splitlines()


def test_a_users_program_passes_and_wrong_uses_are_found(tmp_path):
    """And the public modules agree with their annotations. One test, for mypy takes long."""
    if TORCH < (2, 4):
        pytest.skip(f"the annotations of torch {torch.__version__} itself say too little")
    lines = run_mypy(tmp_path)
    assert [line for line in lines if line.startswith(USER_PROGRAM)] == []
    found = [
        re.match(r"\S+?:(\d+): error: .*\[([\w-]+)\]$", line)
        for line in lines
        if line.startswith(WRONG_USES) and ": note: " not in line
    ]
    found = {(int(match.group(1)), match.group(2)) for match in found}
    wanted = set()
    for number, line in enumerate(read(WRONG_USES).splitlines(), 1):
        comment = re.search(r"  # ([\w-]+)$", line)
        if comment:
            wanted.add((number, comment.group(1)))
    assert found == wanted and len(wanted) > 10
    if TORCH >= (2, 13):  # an older one's own annotations say too little for these
        assert [line for line in lines if line.startswith("lltm_decoupled/")] == []


def test_a_users_program_runs(capsys):
    runpy.run_path(str(ROOT / USER_PROGRAM), run_name="__main__")
    assert "cuda_version" in capsys.readouterr().out


def stub_functions():
    """{name: ([argument: type], result)} of _C.pyi."""
    tree = ast.parse(read("lltm_decoupled/_C.pyi"))
    functions = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
    source = read("lltm_decoupled/_C.pyi")
    return {
        node.name: (
            [f"{a.arg}: {ast.get_source_segment(source, a.annotation)}" for a in node.args.args],
            ast.get_source_segment(source, node.returns),
        )
        for node in functions
    }


def binary_functions():
    """The same of the binary: pybind11 writes each function's signature into its docstring."""
    found = {}
    for name in dir(_native.loaded()):
        if name.startswith("__"):
            continue
        text = getattr(_native.loaded(), name).__doc__.splitlines()[0]
        arguments, result = re.fullmatch(rf"{name}\((.*)\) -> (.*)", text).groups()
        found[name] = (
            [plain_type(argument) for argument in arguments.split(", ") if argument],
            plain_type(result),
        )
    return found


def plain_type(text):
    """One spelling for what pybind11 wrote through the years."""
    text = text.replace("torch.Tensor", "Tensor").replace("at::Tensor", "Tensor")
    text = re.sub(r"(?:typing\.)?Optional\[(\w+)\]", r"\1 | None", text)
    return text.replace("List[", "list[").replace("Dict[", "dict[")


def test_the_stub_describes_the_binary():
    stub, binary = stub_functions(), binary_functions()
    assert sorted(stub) == sorted(binary)
    for name, (arguments, result) in binary.items():
        assert stub[name][0] == arguments, name
        # pybind11 knows that a dict comes, and not of what
        assert stub[name][1].startswith(result), name

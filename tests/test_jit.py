"""lltm_decoupled.jit.load, and the package without a compiled module: on the formula.

The package is copied without its binary, as from a wheel and as in a checkout, and used in
processes of its own. Compiling takes a minute, so most tests have a stand-in for the compiler: it
links a library that hands on the binary under test. torch's build, ninja and the import are real.
"""

import sys
import warnings
from pathlib import Path

import pytest
import torch
from repository import copy_sources, run, tool
from test_build_probe import script

import lltm_decoupled
from build_support import sources
from lltm_decoupled import jit

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="compilers are shell scripts here")

# A compiler that writes down what it is asked for and compiles nothing.
STAND_IN = r"""
echo "$@" >> "{log}"
output=; previous=
for word in "$@"; do [ "$previous" = -o ] && output=$word; previous=$word; done
case " $* " in
*" -shared "*)
  name=$(basename "$output" .so)
  echo "extern \"C\" void* PyInit__C();" \
    "extern \"C\" void* PyInit_$name() {{ return PyInit__C(); }}" |
    "{compiler}" -shared -fPIC -x c++ - -x none "{binary}" -o "$output" ;;
*" -c "*) touch "$output" ;;
*) exec "{compiler}" "$@" ;;
esac
"""
# by the given folder only: another copy may be installed, or be the current folder
ALONE = """
import sys, warnings
sys.path = [p for p in sys.path if p != {parent!r}]
sys.meta_path = [f for f in sys.meta_path if "editable" not in repr(f).lower()]
with warnings.catch_warnings(record=True) as seen:
    warnings.simplefilter("always")
    import lltm_decoupled
seen = [str(w.message) for w in seen if "lltm_decoupled has no compiled module" in str(w.message)]
import torch
from lltm_decoupled import LLTM, LLTMSequence, compat, jit, lltm_cell, reference
"""
COMPARE = """
def compute(kept):
    torch.manual_seed(3)
    cell, layer = LLTM(3, 4), LLTMSequence(3, 4, 2, bidirectional=True, recompute=True)
    kept = kept or [cell.state_dict(), layer.state_dict()]
    cell.load_state_dict(kept[0])
    layer.load_state_dict(kept[1])
    x, h, c = torch.randn(5, 2, 3), torch.randn(2, 4), torch.randn(2, 4)
    packed = torch.nn.utils.rnn.pack_padded_sequence(x, [5, 3])
    raw = compat.lltm_cpp.forward(x[0], cell.weights, cell.bias, h, c)
    results = [*cell(x[0], (h, c)), *layer(x)[1], layer(packed)[0].data, *raw]
    results += compat.lltm_cuda.backward(h, c, *raw[1:], cell.weights)
    results += torch.autograd.grad(layer(x)[0].sum(), list(layer.parameters()))
    return kept, results
def compare(kept, expected):
    results = compute(kept)[1]
    assert len(results) == len(expected)
    for a, b in zip(results, expected):
        torch.testing.assert_close(a, b)
"""


def python(folder, code, **env):
    """What a new process prints that has the package in `folder` only."""
    alone = ALONE.format(parent=str(Path(lltm_decoupled.__file__).resolve().parent.parent))
    env = {"PYTHONPATH": str(folder), "LLTM_WITH_CUDA": "0", **env}
    status, output = run(sys.executable, "-c", alone + COMPARE + code, cwd=folder, env=env)
    assert status == 0, output
    return output


@pytest.fixture(scope="module")
def checkout(tmp_path_factory):
    return copy_sources(tmp_path_factory.mktemp("a b") / "checkout")


@pytest.fixture(scope="module")
def installed(checkout, tmp_path_factory):
    """What a wheel holds, but for the binary."""
    pytest.importorskip("setuptools")
    folder = tmp_path_factory.mktemp("a b") / "site"
    status, output = run(
        sys.executable, "setup.py", "build_py", "--build-lib", folder, cwd=checkout
    )
    assert status == 0, output
    return folder


@pytest.fixture
def stand_in(tmp_path):
    """(environment with the stand-in as its compiler, function that returns what it was asked)"""
    values = {"log": tmp_path / "log", "binary": lltm_decoupled._C.__file__}
    compiler = tool("g++") or pytest.skip("no g++")
    cxx = script(tmp_path / "g++", STAND_IN.format(compiler=compiler, **values))
    env = {"CXX": str(cxx), "TORCH_EXTENSIONS_DIR": str(tmp_path / "kept")}
    return env, lambda: values["log"].read_text(encoding="utf-8").splitlines()


LOAD = """
import os
assert len(seen) == 1, seen
kept, expected = compute(None)
before = LLTM(3, 4)
environment = dict(os.environ)
C = jit.load(ARGUMENTS)
assert dict(os.environ) == environment
assert C is lltm_decoupled._C is sys.modules["lltm_decoupled._C"] is jit.load()
assert lltm_decoupled.build_info() == C.build_info() and C.build_info()["torch"]
compare(kept, expected)
with torch.autograd.profiler.profile() as profile:
    before(torch.ones(2, 3))
assert "lltm_decoupled::cell" in [event.name for event in profile.function_events]
if hasattr(torch, "library"):
    meta = [torch.ones(shape, device="meta") for shape in SHAPES]
    assert torch.ops.lltm_decoupled.cell(*meta)[0].is_meta
print(C.__file__)
""".replace("SHAPES", "((5, 3), (12, 7), 12, (5, 4), (5, 4))")


def load(folder, arguments, env):
    """The binary's path, after a process that began without it and loaded it."""
    return Path(python(folder, LOAD.replace("ARGUMENTS", arguments), **env).splitlines()[-1])


@pytest.mark.parametrize("place", ["installed", "checkout"])
def test_load_becomes_the_compiled_module(place, request, stand_in, tmp_path):
    folder = request.getfixturevalue(place)
    env, asked = stand_in
    directory = tmp_path / "kept" if place == "installed" else tmp_path / "c d" / "e"
    arguments = "" if place == "installed" else f"build_directory={str(directory)!r}"
    assert directory in load(folder, arguments, env).parents
    compiled = [line for line in asked() if " -c " in line]
    assert len(compiled) == 8 and sum("bindings.cpp" in line for line in compiled) == 1
    for line in compiled:
        assert f'-DLLTM_VERSION="{lltm_decoupled.__version__}"' in line
        assert "-O3" in line.split() and "-DLLTM_WITH_CUDA" not in line
    # A second process finds it, whatever it starts with.
    load(folder, arguments, env)
    assert [line for line in asked() if " -c " in line] == compiled


def test_without_a_compiler_it_runs_on_the_formula(installed, tmp_path):
    """With the state dicts of the compiled modules, and to the same values."""
    names = {"torch": torch, **vars(lltm_decoupled)}
    exec(COMPARE, names)
    file = tmp_path / "expected"
    torch.save(names["compute"](None), str(file))
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "ninja").symlink_to(tool("ninja"))
    code = f"""
kept, expected = torch.load({str(file)!r})
compare(kept, expected)
try:
    jit.load()
except RuntimeError as error:
    print(error)
assert len(seen) == 1
compare(kept, expected)
info = lltm_decoupled.build_info()
assert not info["cuda"] and "none" in info["compiler"], info
import lltm_decoupled.cli
assert lltm_decoupled.cli.main(["info"]) == lltm_decoupled.cli.main(["check"]) == 0
"""
    output = python(installed, code, PATH=str(tmp_path / "bin"), CXX="")
    assert "lltm_decoupled.jit: no C++ compiler was found" in output


def test_a_compiled_module_is_not_compiled_again():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert jit.load() is jit.load(with_cuda=False) is lltm_decoupled._C
    if not lltm_decoupled.build_info()["cuda"]:
        with pytest.raises(RuntimeError, match="without CUDA is loaded"):
            jit.load(with_cuda=True)


def test_without_its_sources(monkeypatch, tmp_path):
    monkeypatch.setattr(jit, "_PLACES", (tmp_path,))
    with pytest.raises(RuntimeError, match="the sources are missing"):
        jit._build(None, False, None)


@pytest.fixture
def cuda_machine(monkeypatch, checkout, tmp_path):
    """What torch's load is called with, and TORCH_CUDA_ARCH_LIST then, where CUDA can be built."""
    monkeypatch.setattr(jit, "_PLACES", (checkout,))
    for name in [name for name in sys.modules if "._build_support" in name]:
        monkeypatch.delitem(sys.modules, name)
    facts, _, probe, *_ = jit._build_support(checkout)
    calls = []

    class CppExtension:
        CUDA_HOME = None

        @staticmethod
        def load(**options):
            calls.append((options, jit.os.environ.get("TORCH_CUDA_ARCH_LIST")))

    toolkit = facts.Toolkit("/bin/nvcc", "13.0", "/opt/cuda", include_dirs=("/x/include",))
    found = {"torch_version": "2.14.1+cu130", "torch_cuda": "13.0", "toolkit": toolkit}
    found.update(platform="linux", compiler=facts.Compiler("c++"), version="0.1.0")
    monkeypatch.setattr(probe, "gather", lambda env, version: {"env": env, **found})
    monkeypatch.setattr(probe, "import_cpp_extension", lambda: CppExtension)
    monkeypatch.delenv("TORCH_CUDA_ARCH_LIST", raising=False)
    monkeypatch.delenv("LLTM_WITH_CUDA", raising=False)
    return calls, CppExtension, tmp_path / "kept"


@pytest.mark.parametrize("archs", ["", "8.0;9.0"])
def test_with_cuda(cuda_machine, monkeypatch, archs):
    calls, cpp_extension, folder = cuda_machine
    if archs:
        monkeypatch.setenv("TORCH_CUDA_ARCH_LIST", archs)
    jit._build(folder, False, None)
    ((options, seen),) = calls
    assert seen == (archs or "7.5;8.0;9.0;10.0;12.0+PTX")
    assert options["with_cuda"] and options["build_directory"] == str(folder)
    assert len([s for s in options["sources"] if s.endswith(".cu")]) == len(sources.CUDA_SOURCES)
    assert "-DLLTM_WITH_CUDA" in options["extra_cflags"]
    assert options["extra_include_paths"] == ["/x/include"]
    assert cpp_extension.CUDA_HOME == "/opt/cuda"
    jit._build(folder, False, False)  # objects of the two never meet
    without = calls[1][0]
    assert not without["with_cuda"] and without["name"] != options["name"]
    assert [s for s in without["sources"] if s.endswith(".cu")] == []


def test_every_file_is_carried(installed, checkout):
    carried = {p.name for p in (installed / "lltm_decoupled" / "_sources").rglob("*.*")}
    for folder in ("cuda_core", "bindings", "build_support"):
        assert {p.name for p in (checkout / folder).glob("*.*")} <= carried


def test_compiled_for_real(installed, tmp_path):
    """Without optimisation, for the time's sake."""
    compiler = tool("g++") or pytest.skip("no g++")
    cxx = script(tmp_path / "g++", f'exec "{compiler}" "$@" -O0')
    env = {"CXX": str(cxx), "TORCH_EXTENSIONS_DIR": str(tmp_path)}
    assert tmp_path in load(installed, "verbose=True", env).parents

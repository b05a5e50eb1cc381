"""What people meet on machines that are not as they should be: one message, with cause and remedy.

The real setup.py runs against a torch that is no more than its version, so that nothing is compiled
and every machine can play every other.
"""

import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest
from repository import copy_sources, run
from test_build_probe import BANNER, make_toolkit, script

import lltm_decoupled

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="compilers are shell scripts here")
PACKAGE = Path(lltm_decoupled.__file__).resolve().parent

TORCH = """\
__version__ = "2.14.1+cu130"
class version:
    cuda = "13.0"
class cuda:
    @staticmethod
    def device_count():
        return 0
"""
CPP_EXTENSION = """\
import os
def CUDAExtension(*args, **options):
    raise SystemExit("compiling, with CUDA_HOME=" + os.environ["CUDA_HOME"])
def CppExtension(*args, **options):
    raise SystemExit("compiling")
"""
# setup.py on a machine that has no toolkit where toolkits usually are
SETUP = """\
import runpy, sys
from build_support import probe
probe.DEFAULT_CUDA = "nowhere"
sys.argv[0] = "setup.py"
runpy.run_path("setup.py", run_name="__main__")
"""
# `python -m build_support` on the same machine
SAID_BY_MAKE = """\
import runpy
from build_support import probe
probe.DEFAULT_CUDA = "nowhere"
runpy.run_module("build_support", run_name="__main__")
"""
NAMED = ("lltm_decoupled: building ", "lltm_decoupled: error: ")


@pytest.fixture(scope="module")
def checkout(tmp_path_factory):
    pytest.importorskip("setuptools")
    return copy_sources(tmp_path_factory.mktemp("a b") / "checkout")


@pytest.fixture
def machine(tmp_path):
    """A folder, and an environment with that torch; on PATH only a ninja and a compiler."""
    (tmp_path / "torch" / "utils").mkdir(parents=True)
    for file, text in (
        ("__init__", TORCH),
        ("utils/__init__", ""),
        ("utils/cpp_extension", CPP_EXTENSION),
    ):
        (tmp_path / "torch" / (file + ".py")).write_text(text, encoding="utf-8")
    script(tmp_path / "bin" / "ninja", "exit 0")
    script(tmp_path / "bin" / "c++", "exit 0")
    return tmp_path, {"PYTHONPATH": str(tmp_path), "PATH": str(tmp_path / "bin")}


def build(checkout, env, python=sys.executable, **more):
    """What `setup.py build_ext` prints, and the one line of it that explains. make says it too."""
    without = (
        "CUDA_HOME",
        "CUDA_PATH",
        "TORCH_CUDA_ARCH_LIST",
        "LLTM_WITH_CUDA",
        "FORCE_CUDA",
        "CXX",
    )
    clean = {name: value for name, value in os.environ.items() if name not in without}
    outputs, lines = [], []
    for arguments in (["-c", SETUP, "build_ext"], ["-c", SAID_BY_MAKE]):
        done = subprocess.run(
            [str(python), *arguments],
            cwd=str(checkout),
            env={**clean, **env, **more},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        output = done.stdout.decode("utf-8", errors="replace")
        assert "Traceback" not in output, output
        outputs.append(output)
        lines.append([line for line in output.splitlines() if line.startswith(NAMED)])
    assert done.returncode == (": error: " in lines[0][0]), output
    assert len(lines[0]) == 1 and lines[0] == lines[1], outputs
    assert ("minutes" in outputs[1]) == ("building with CUDA" in outputs[1])
    return outputs[0], lines[0][0]


def no_nvcc(folder):
    return {}, ["no nvcc was found", "PATH"]


def wrong_cuda_home(folder):
    make_toolkit(folder / "cuda", version="13.0", headers="13000")
    (folder / "bin" / "nvcc").symlink_to(folder / "cuda" / "bin" / "nvcc")
    return {"CUDA_HOME": str(folder / "none")}, ["no nvcc was found", f"CUDA_HOME={folder}/none"]


def nvcc_without_its_toolkit(folder):
    nvcc = script(folder / "bin" / "nvcc", BANNER % "13.0")
    return {}, [str(nvcc), "lacks include/cuda_runtime.h, libcudart"]


def toolkit_of_another_cuda(folder):
    make_toolkit(folder / "cuda", version="12.4")
    (folder / "bin" / "nvcc").symlink_to(folder / "cuda" / "bin" / "nvcc")
    return {}, ["CUDA 12.4", "CUDA 13.0", "major versions must be equal"]


BROKEN = (no_nvcc, wrong_cuda_home, nvcc_without_its_toolkit, toolkit_of_another_cuda)


@pytest.mark.parametrize("broken", BROKEN)
def test_no_cuda_to_build_with(checkout, machine, broken):
    """Announced where nobody asked for CUDA, refused where somebody did; what to do in both."""
    folder, env = machine
    more, words = broken(folder)
    output, announced = build(checkout, env, **more)
    assert "building without CUDA" in announced and output.rstrip().endswith("compiling")
    output, refused = build(checkout, env, LLTM_WITH_CUDA="1", **more)
    assert "error: LLTM_WITH_CUDA=1 asks for CUDA, but" in refused and "compiling" not in output
    remedy = "install the toolkit of CUDA 13, or set CUDA_HOME to its folder"
    for line in (announced, refused):
        assert [word for word in [*words, remedy] if word not in line] == []


def test_wrapper_of_nvcc_outside_of_the_toolkit(checkout, machine):
    """torch takes the wrapper's parent folder for the toolkit, and then finds no libcudart."""
    folder, env = machine
    nvcc = make_toolkit(folder / "a b" / "cuda", version="13.0", headers="13000")
    wrapper = script(folder / "bin" / "nvcc", f'exec "{nvcc}" "$@"')
    output, line = build(checkout, env)
    assert f"building with CUDA 13.0 ({wrapper})" in line
    home = os.path.realpath(str(folder / "a b" / "cuda"))
    assert output.rstrip().endswith(f"compiling, with CUDA_HOME={home}")


def test_no_ninja(checkout, machine):
    """In an environment without one: torch would fall back to what reuses stale objects."""
    folder, env = machine
    (folder / "bin" / "ninja").unlink()
    status, output = run(sys.executable, "-m", "venv", "--without-pip", folder / "environment")
    assert status == 0, output
    packages = os.pathsep.join([env["PYTHONPATH"], sysconfig.get_path("purelib")])
    python = folder / "environment" / "bin" / "python"
    _, line = build(checkout, env, python, PYTHONPATH=packages)
    assert line == "lltm_decoupled: error: ninja is missing: pip install ninja"


def test_no_compiler(checkout, machine):
    folder, env = machine
    (folder / "bin" / "c++").unlink()
    _, line = build(checkout, env)
    assert line.startswith("lltm_decoupled: error: no C++ compiler was found") and "CXX" in line


def import_under(code, folder):
    status, output = run(sys.executable, "-c", code, cwd=folder, env={"PYTHONPATH": str(folder)})
    assert status != 0
    message = output.rstrip().splitlines()[-1]
    assert message.startswith("ImportError: lltm_decoupled")
    assert "Rebuild it against the torch that is installed: pip install --no-build" in message
    return message


def test_binary_of_another_torch():
    """As from a cached wheel, where torch has been replaced since."""
    code = "import torch; torch.__version__ = '9.8.7+cu999'; import lltm_decoupled"
    message = import_under(code, PACKAGE.parent)
    assert "was built for torch " + lltm_decoupled.build_info()["torch"] in message
    assert "torch 9.8.7+cu999 is installed" in message


def test_binary_that_does_not_load(tmp_path):
    """As one of another torch mostly is: a symbol is missing."""
    copy = tmp_path / "lltm_decoupled"
    shutil.copytree(str(PACKAGE), str(copy), ignore=shutil.ignore_patterns("_C*.so", "*.pyd"))
    (copy / ("_C" + sysconfig.get_config_var("EXT_SUFFIX"))).write_bytes(b"no library")
    # by this path only: the package looks into its other folders on the path too
    code = f"import sys; sys.path = [p for p in sys.path if p != {str(PACKAGE.parent)!r}];"
    code += "sys.meta_path = [f for f in sys.meta_path if 'editable' not in repr(f).lower()];"
    message = import_under(code + "import lltm_decoupled", tmp_path)
    assert "the compiled module lltm_decoupled._C cannot be loaded under torch " in message


def test_make_says_what_it_will_build(checkout):
    """pip -q, which make calls, does not show what setup.py says."""
    make = shutil.which("make") or pytest.skip("no make")
    status, output = run(make, "-n", "demo", "VENV=nowhere", cwd=checkout)
    assert status == 0, output
    assert output.index("-m build_support") < output.index("--no-build-isolation -e")

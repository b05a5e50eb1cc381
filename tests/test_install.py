"""Installing with uv, and CUDA and CPU builds in one tree; the compiler is a stand-in for its time.

What it "links" is the binary under test, so that what was installed can be imported.
"""

import shutil
import sys
import sysconfig
from pathlib import Path

import pytest
from repository import copy_sources, run, tool
from test_build_probe import make_toolkit, script

import lltm_decoupled
from build_support import sources

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="compilers are shell scripts here")

STAND_IN = r"""
output=; previous=
for word in "$@"; do [ "$previous" = -o ] && output=$word; previous=$word; done
case " $* " in
*" -shared "*)
  for word in "$@"; do case $word in *.o) echo "linked $word" >> "{log}" ;; esac; done
  cp "{binary}" "$output" ;;
*" -c "*)
  echo "$output" >> "{log}"
  touch "$output" ;;
*) exec "{compiler}" "$@" ;;
esac
"""


@pytest.fixture(scope="module")
def checkout(tmp_path_factory):
    for module in ("setuptools", "wheel", "ninja"):
        pytest.importorskip(module)
    return copy_sources(tmp_path_factory.mktemp("a b") / "checkout")


@pytest.fixture
def machine(tmp_path):
    """(environment, function that returns what was compiled since its last call, and linked)"""
    log = tmp_path / "log"
    values = {"log": log, "binary": lltm_decoupled._C.__file__}
    compiler = tool("g++") or pytest.skip("no g++")
    cxx = script(tmp_path / "g++", STAND_IN.format(compiler=compiler, **values))

    def compiled():
        lines = log.read_text(encoding="utf-8").splitlines()
        log.write_text("", encoding="utf-8")
        linked = [line[len("linked ") :] for line in lines if line.startswith("linked ")]
        return [line for line in lines if not line.startswith("linked ")], sorted(linked)

    return {"CXX": str(cxx), "LLTM_WITH_CUDA": "0"}, compiled


@pytest.fixture
def target(tmp_path):
    """The Python of a new environment that has torch and the build tools, and not this package."""
    folder = tmp_path / "environment"
    status, output = run(sys.executable, "-m", "venv", "--without-pip", folder)
    assert status == 0, output
    (site,) = folder.glob("lib/python*/site-packages")
    for entry in Path(sysconfig.get_path("purelib")).iterdir():
        if entry.name.startswith(("lltm_decoupled", "__editable__")):
            continue
        if entry.suffix == ".dist-info":  # uv does not take a link for an installed package
            shutil.copytree(str(entry), str(site / entry.name))
        else:
            (site / entry.name).symlink_to(entry)
    return folder / "bin" / "python"


def test_uv(checkout, machine, target, tmp_path):
    """[tool.uv] in pyproject.toml: uv takes the torch that is installed, and gets no other."""
    uv = tool("uv") or pytest.skip("no uv: pip install uv")
    env, compiled = machine
    env = {**env, "UV_CACHE_DIR": str(tmp_path / "cache"), "UV_OFFLINE": "1", "VIRTUAL_ENV": ""}
    status, output = run(uv, "pip", "install", "--python", target, ".", cwd=checkout, env=env)
    assert status == 0 and "+ lltm-decoupled" in output, output
    assert "torch" not in output and len(compiled()[0]) == 8
    code = "import lltm_decoupled as l, torch; print(l.__file__, l.LLTM(3, 4)(torch.ones(2, 3)))"
    status, output = run(target, "-c", code, cwd=tmp_path, env={"PYTHONPATH": ""})
    assert status == 0 and str(target.parent.parent) in output, output


# setup.py with a torch that says it was built for CUDA 13
SETUP = """\
import os, runpy, sys, torch
torch.version.cuda = "13.0"
from torch.utils import cpp_extension
cpp_extension.CUDA_HOME = os.environ["CUDA_HOME"]
sys.argv = ["setup.py", "build_ext"]
runpy.run_path("setup.py", run_name="__main__")
"""


def test_objects_serve_their_own_build_only(checkout, machine, tmp_path):
    """Without CUDA, with it, and without again, in one tree."""
    env, compiled = machine
    nvcc = make_toolkit(tmp_path / "cuda", version="13.0", headers="13000")
    banner = nvcc.read_text(encoding="utf-8").replace(r"\323\303 ", "")  # torch wants UTF-8
    script(
        nvcc,
        STAND_IN.format(
            compiler=script(tmp_path / "nvcc", banner), log=tmp_path / "log", binary=""
        ),
    )
    env = {**env, "CUDA_HOME": str(tmp_path / "cuda"), "TORCH_CUDA_ARCH_LIST": "7.5"}
    builds = []
    for with_cuda in "0101":
        status, output = run(
            sys.executable, "-c", SETUP, cwd=checkout, env={**env, "LLTM_WITH_CUDA": with_cuda}
        )
        assert status == 0, output
        builds.append(compiled())
    without, with_cuda, *later = builds
    (objects, linked), (cuda_objects, cuda_linked) = without, with_cuda
    assert len(objects) == len(sources.APART) + 1
    assert len(cuda_objects) == len(objects) + len(sources.CUDA_SOURCES)
    assert not set(objects) & set(cuda_objects)
    assert linked == sorted(objects) and cuda_linked == sorted(cuda_objects)
    assert later == [([], linked), ([], cuda_linked)]


# setup.py as if for Windows, whose compiler wants flags of their own for some files
FOR_WINDOWS = """\
import runpy, sys
from build_support import probe
gather = probe.gather
probe.gather = lambda *args: {**gather(*args), "target": "win-amd64"}
sys.argv = ["setup.py", "build_ext"]
runpy.run_path("setup.py", run_name="__main__")
"""


def test_files_with_flags_of_their_own(checkout, machine):
    env, compiled = machine
    for again in (False, True):
        status, output = run(sys.executable, "-c", FOR_WINDOWS, cwd=checkout, env=env)
        assert status == 0, output
        objects, linked = compiled()
        assert len(linked) == 8 and len(objects) == (0 if again else 8)
    for path in linked:
        flags = (Path(path).parents[1] / "build.ninja").read_text(encoding="utf-8")
        own = {name for name in ("AVX2", "AVX512") if f"/arch:{name}" in flags}
        wanted = Path(path).stem.replace("cell_host_", "").upper()
        assert own == ({wanted} if wanted.startswith("AVX") else set())
        assert "LLTM_HOST_X86_FLAGS" in flags

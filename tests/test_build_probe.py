"""Collecting what the build decides on: toolkits in odd places, odd banners, and no torch."""

import os
import sys
import tarfile

import pytest
from repository import SOURCE_FOLDERS, copy_sources, run

from build_support import probe

posix = pytest.mark.skipif(sys.platform == "win32", reason="fake compilers are shell scripts")
BANNER = r"printf '\323\303 nvcc: release %s, V0\n'"  # bytes that are not UTF-8


def script(path, *lines):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(["#!/bin/sh", *lines, ""]), encoding="utf-8")
    path.chmod(0o755)
    return path


def make_toolkit(home, version="12.4", headers="12040", folders=("include", "lib64")):
    include, library = folders
    for file, text in (
        ("cuda_runtime.h", ""),
        ("cuda_runtime_api.h", f"#define CUDART_VERSION  {headers}\n"),
        ("crt/host_config.h", "#if _MSC_VER < 1910 || _MSC_VER >= 1950\n"),
    ):
        (home / include / file).parent.mkdir(parents=True, exist_ok=True)
        (home / include / file).write_text(text, encoding="utf-8")
    (home / library).mkdir(parents=True, exist_ok=True)
    (home / library / "libcudart.so").touch()
    dryrun = rf"[ $1 = --dryrun ] && {{ printf '\323\n#$ TOP={home}/bin/..\n' >&2; exit 1; }}"
    return script(home / "bin" / "nvcc", dryrun, BANNER % version)


@pytest.fixture
def machine(tmp_path, monkeypatch):
    """An environment with an empty bin folder as its PATH (and a shell), and no toolkit."""
    (tmp_path / "bin").mkdir()
    monkeypatch.setattr(probe, "DEFAULT_CUDA", str(tmp_path / "default"))
    return tmp_path, {"PATH": str(tmp_path / "bin")}


@posix
def test_wrapper_outside_its_toolkit(machine):
    folder, env = machine
    nvcc = make_toolkit(folder / "a b" / "cuda")
    wrapper = script(folder / "bin" / "nvcc", f'exec "{nvcc}" "$@"')
    toolkit, _ = probe.find_toolkit(env)
    assert toolkit.nvcc == str(wrapper)
    assert toolkit.home == os.path.realpath(str(folder / "a b" / "cuda"))
    assert (toolkit.version, toolkit.headers_version, toolkit.missing) == ("12.4", "12.4", ())
    assert toolkit.msvc_range == (1910, 1950)
    assert toolkit.include_dirs == toolkit.library_dirs == ()


@posix
def test_nvcc_that_does_not_say_where_it_is(machine):
    folder, env = machine
    make_toolkit(folder / "cuda")
    script(folder / "cuda" / "bin" / "nvcc", BANNER % "11.5")
    (folder / "bin" / "nvcc").symlink_to(folder / "cuda" / "bin" / "nvcc")
    toolkit, _ = probe.find_toolkit(env)
    assert os.path.realpath(toolkit.home) == os.path.realpath(str(folder / "cuda"))
    assert toolkit.version == "11.5"


@posix
def test_headers_and_libraries_in_unusual_folders(machine):
    folder, env = machine
    targets = ("targets/x86_64-linux/include", "targets/x86_64-linux/lib")
    make_toolkit(folder / "default", folders=targets)
    toolkit, _ = probe.find_toolkit(env)
    home = os.path.realpath(str(folder / "default"))
    assert toolkit.missing == ()
    assert toolkit.include_dirs == (os.path.join(home, *targets[0].split("/")),)
    assert toolkit.library_dirs == (os.path.join(home, *targets[1].split("/")),)


@posix
def test_incomplete_and_absent_toolkits(machine):
    folder, env = machine
    assert probe.find_toolkit(env)[0] is None
    script(folder / "bin" / "nvcc", "exit 1")
    assert probe.find_toolkit(env)[0] is None
    script(folder / "bin" / "nvcc", BANNER % "12.4")
    assert probe.find_toolkit(env)[0].missing == ("include/cuda_runtime.h", "libcudart")


@posix
def test_cuda_home_is_the_users_word(machine):
    folder, env = machine
    make_toolkit(folder / "default")
    make_toolkit(folder / "other", version="11.8", headers="11080")
    env["CUDA_HOME"] = str(folder / "other")
    assert probe.find_toolkit(env)[0].version == "11.8"
    env["CUDA_HOME"] = str(folder / "nowhere")
    toolkit, searched = probe.find_toolkit(env)
    assert toolkit is None and searched == f"CUDA_HOME={folder / 'nowhere'}"


@posix
def test_compiler_by_any_name(machine):
    folder, env = machine
    assert probe.find_compiler(env, "linux") is None
    script(folder / "bin" / "clang++", "exit 0")
    assert probe.find_compiler(env, "linux").path == "clang++"
    assert probe.find_compiler({**env, "CXX": "icpx"}, "linux") is None  # the user's own word


@posix
def test_msvc_banner_in_another_language(machine):
    folder, env = machine
    assert probe.find_compiler(env, "win32") is None
    script(folder / "bin" / "cl", r"printf 'Microsoft (R) C/C++ \323\303 19.39.33523 x64\n' >&2")
    assert probe.find_compiler(env, "win32").version == "1939"


@pytest.mark.parametrize(
    "macros, is_gcc",
    [
        ("#define __GNUC__ 12", True),
        ("#define __GNUC__ 4\n#define __clang__ 1", False),  # what Clang says of itself
        ("", False),
    ],
)
def test_gcc_is_known_by_its_macros(monkeypatch, macros, is_gcc):
    commands = []
    monkeypatch.setattr(probe.shutil, "which", lambda name, path: name)
    monkeypatch.setattr(probe, "ask", lambda *command: commands.append(command) or macros)
    assert probe.find_compiler({"CXX": "ccache g++"}, "linux").is_gcc is is_gcc
    assert commands[0][:2] == ("ccache", "g++")


def test_architectures_that_torch_knows(monkeypatch):
    class CppExtension:
        @staticmethod
        def _get_cuda_arch_flags():
            if os.environ["TORCH_CUDA_ARCH_LIST"] not in ("7.5", "8.0"):
                raise ValueError("Unknown CUDA arch")

    monkeypatch.delenv("TORCH_CUDA_ARCH_LIST", raising=False)
    assert probe.known_archs(CppExtension, ["7.5", "8.0", "12.0"]) == {"7.5", "8.0"}
    assert "TORCH_CUDA_ARCH_LIST" not in os.environ
    assert probe.known_archs(object, ["7.5"]) is None


@pytest.fixture(scope="module")
def checkout(tmp_path_factory):
    pytest.importorskip("setuptools")
    return copy_sources(tmp_path_factory.mktemp("a b") / "checkout")


@pytest.fixture
def no_torch(tmp_path):
    """An environment in which importing torch and running nvcc fail, and leave a trace."""
    (tmp_path / "torch.py").write_text("raise ImportError('torch was imported')", encoding="utf-8")
    script(tmp_path / "bin" / "nvcc", f'touch "{tmp_path}/nvcc was run"', "exit 1")
    path = os.pathsep.join([str(tmp_path / "bin"), os.environ.get("PATH", "")])
    yield {"PYTHONPATH": str(tmp_path), "PATH": path, "LC_ALL": "C", "LLTM_TORCH_SITE": "nowhere"}
    assert not (tmp_path / "nvcc was run").exists()


@pytest.mark.parametrize("command", ["--version", "egg_info", "sdist"])
def test_metadata_needs_neither_torch_nor_cuda(checkout, no_torch, command):
    status, output = run(
        sys.executable, "-X", "utf8=0", "setup.py", command, cwd=checkout, env=no_torch
    )
    assert status == 0, output
    assert "torch was imported" not in output


def test_sdist_holds_every_source(checkout, no_torch, tmp_path):
    status, output = run(
        sys.executable, "setup.py", "sdist", "-d", tmp_path, cwd=checkout, env=no_torch
    )
    assert status == 0, output
    (archive,) = tmp_path.glob("*.tar.gz")
    with tarfile.open(str(archive)) as tar:
        packed = {name.split("/", 1)[1] for name in tar.getnames() if "/" in name}
    wanted = {path for path in checkout.iterdir() if path.is_file()}
    wanted.add(checkout / ".ci" / "run")
    for folder in SOURCE_FOLDERS:
        wanted |= {path for path in (checkout / folder).rglob("*") if path.is_file()}
    wanted = {path.relative_to(checkout).as_posix() for path in wanted}
    assert sorted(path for path in wanted - packed if "__pycache__" not in path) == []


@pytest.mark.parametrize(
    "command",
    [
        ["setup.py", "build_ext"],
        ["-c", "from build_support import backend; backend.build_wheel('wheels')"],
        ["-c", "from build_support import backend; backend.build_editable('wheels')"],
    ],
)
def test_a_build_without_torch_says_how(checkout, no_torch, command):
    status, output = run(sys.executable, *command, cwd=checkout, env=no_torch)
    assert status != 0
    assert "pip install --no-build-isolation ." in output


def test_old_torch_with_new_setuptools_says_how(checkout, tmp_path):
    (tmp_path / "torch" / "utils").mkdir(parents=True)
    for file, text in (
        ("torch/__init__.py", "__version__ = '2.0.1'"),
        ("torch/utils/__init__.py", ""),
        # raised here: a broken pkg_resources on the path would stop older setuptools themselves
        ("torch/utils/cpp_extension.py", "raise ImportError('No module named pkg_resources')"),
    ):
        (tmp_path / file).write_text(text, encoding="utf-8")
    status, output = run(
        sys.executable, "setup.py", "build_ext", cwd=checkout, env={"PYTHONPATH": str(tmp_path)}
    )
    assert status != 0
    assert 'pip install "setuptools<70"' in output and "2.0.1" in output


def test_backend_looks_into_the_target_environment(monkeypatch):
    backend = pytest.importorskip("build_support.backend")
    purelib = probe.sysconfig.get_path("purelib")
    assert backend.site_folders({})[0] == purelib
    assert backend.site_folders({"LLTM_TORCH_SITE": "/elsewhere"}) == ["/elsewhere"]

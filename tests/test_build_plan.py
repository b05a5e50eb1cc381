"""What is built on which machine: the decision is a pure function, held to a table."""

import os

import pytest
from repository import files

from build_support.facts import BuildError, Compiler, Toolkit
from build_support.plan import plan
from build_support.sources import APART, CUDA_SOURCES, HOST_SOURCES, TOGETHER, write_together

CU130 = Toolkit("/opt/wrapper/nvcc", "13.0", "/opt/cuda-13.0", headers_version="13.0")
CU124 = Toolkit("/opt/cuda-12.4/bin/nvcc", "12.4", "/opt/cuda-12.4")
CU115 = Toolkit("C:/cuda/bin/nvcc.exe", "11.5", "C:/cuda", msvc_range=(1910, 1930))
BARE = Toolkit("/usr/bin/nvcc", "13.0", "/usr", missing=("include/cuda_runtime.h", "libcudart"))

CPU_TORCH = {"torch_version": "2.13.0+cpu", "torch_cuda": None}
NEW_TORCH = {"torch_version": "2.14.1+cu130", "torch_cuda": "13.0"}
OLD_TORCH = {"torch_version": "1.11.0+cu115", "torch_cuda": "11.5"}


def make(env=None, platform="linux", **facts):
    facts = {**NEW_TORCH, "toolkit": CU130, "compiler": Compiler("c++"), **facts}
    return plan(env or {}, platform, version="0.1.0", **facts)


# environment, facts -> CUDA or not, what the one line says
DECISIONS = [
    ({}, {}, True, ["13.0", "/opt/wrapper/nvcc", "2.14.1+cu130"]),
    ({"CUDA_VISIBLE_DEVICES": ""}, {}, True, ["with CUDA"]),  # a GPU is not needed to build
    ({"LLTM_WITH_CUDA": "1"}, {}, True, ["with CUDA"]),
    ({"FORCE_CUDA": "1"}, {}, True, ["with CUDA"]),
    ({"LLTM_WITH_CUDA": "0"}, {}, False, ["LLTM_WITH_CUDA=0"]),
    ({"FORCE_CUDA": "0"}, {}, False, ["FORCE_CUDA=0"]),
    ({"LLTM_WITH_CUDA": "0", "FORCE_CUDA": "1"}, {}, False, ["LLTM_WITH_CUDA=0"]),
    ({"LLTM_WITH_CUDA": "", "FORCE_CUDA": "0"}, {}, False, ["FORCE_CUDA=0"]),
    ({}, CPU_TORCH, False, ["2.13.0+cpu", "without CUDA"]),
    ({}, {**CPU_TORCH, "toolkit": None}, False, ["2.13.0+cpu"]),
    ({}, {"toolkit": None, "searched": "PATH"}, False, ["no nvcc was found", "PATH"]),
    ({}, {"toolkit": BARE}, False, ["/usr/bin/nvcc", "cuda_runtime.h", "libcudart"]),
    ({}, {"toolkit": CU124}, False, ["12.4", "13.0", "/opt/cuda-12.4/bin/nvcc"]),
    ({}, {**OLD_TORCH, "toolkit": CU115}, True, ["11.5", "1.11.0+cu115"]),
]


@pytest.mark.parametrize("env, facts, with_cuda, words", DECISIONS)
@pytest.mark.parametrize("platform", ["linux", "win32"])
def test_cuda_or_not(platform, env, facts, with_cuda, words):
    result = make(env, platform, **facts)
    assert result.with_cuda is with_cuda
    assert result.decision.startswith("lltm_decoupled: building with")
    assert "\n" not in result.decision
    assert [word for word in words if word not in result.decision] == []
    assert set(CUDA_SOURCES) <= set(result.sources) if with_cuda else result.sources == [*APART]
    assert (("LLTM_WITH_CUDA", None) in result.define_macros) is with_cuda


@pytest.mark.parametrize(
    "env, facts, words",
    [
        ({"LLTM_WITH_CUDA": "1"}, CPU_TORCH, ["LLTM_WITH_CUDA=1", "2.13.0+cpu"]),
        ({"LLTM_WITH_CUDA": "1"}, {"toolkit": None}, ["no nvcc was found", "PATH"]),
        ({"FORCE_CUDA": "1"}, {"toolkit": BARE}, ["FORCE_CUDA=1", "include/cuda_runtime.h"]),
        ({"FORCE_CUDA": "1"}, {"toolkit": CU124}, ["12.4", "13.0", "/opt/cuda-12.4/bin/nvcc"]),
        ({"LLTM_WITH_CUDA": "yes"}, {}, ["LLTM_WITH_CUDA", "0 or 1", "'yes'"]),
        ({}, {"torch_version": "1.10.2"}, ["1.11", "1.10.2"]),
        ({}, {"compiler": None}, ["no C++ compiler was found", "g++", "CXX"]),
        ({}, {"known_archs": {"3.5"}}, ["TORCH_CUDA_ARCH_LIST", "13.0"]),
    ],
)
def test_what_cannot_be_built_says_why(env, facts, words):
    with pytest.raises(BuildError) as error:
        make(env, **facts)
    assert [word for word in words if word not in str(error.value)] == []


ALL = None  # torch does not say which it knows
TORCH_1_11 = {"5.0", "6.0", "7.0", "7.5", "8.0", "8.6"}


@pytest.mark.parametrize(
    "nvcc, known, archs",
    [
        ("10.2", ALL, "5.0;6.0;7.0;7.5+PTX"),
        ("11.0", ALL, "5.0;6.0;7.0;7.5;8.0+PTX"),
        ("11.5", ALL, "5.0;6.0;7.0;7.5;8.0+PTX"),
        ("11.8", ALL, "5.0;6.0;7.0;7.5;8.0;9.0+PTX"),
        ("11.8", TORCH_1_11, "5.0;6.0;7.0;7.5;8.0+PTX"),
        ("12.4", ALL, "5.0;6.0;7.0;7.5;8.0;9.0+PTX"),
        ("13.0", ALL, "7.5;8.0;9.0;10.0;12.0+PTX"),
        ("13.2", ALL, "7.5;8.0;9.0;10.0;12.0+PTX"),
        ("14.1", ALL, "7.5;8.0;9.0;10.0;12.0+PTX"),
    ],
)
def test_default_architectures(nvcc, known, archs):
    facts = {"toolkit": Toolkit("nvcc", nvcc, "/cuda"), "torch_cuda": nvcc, "known_archs": known}
    result = make(**facts)
    assert result.arch_list == archs
    assert result.environment["TORCH_CUDA_ARCH_LIST"] == archs
    # The user's list stays as it is; a visible GPU leaves the choice to torch.
    assert make({"TORCH_CUDA_ARCH_LIST": "8.0"}, **facts).arch_list == "8.0"
    assert "TORCH_CUDA_ARCH_LIST" not in make(gpu_visible=True, **facts).environment


def test_the_toolkit_of_nvcc_is_the_one_torch_uses():
    assert make().environment["CUDA_HOME"] == "/opt/cuda-13.0"
    assert "CUDA_HOME" not in make({"LLTM_WITH_CUDA": "0"}).environment


def test_flags():
    for platform in ("linux", "darwin", "win32"):
        flags = make(platform=platform).extra_compile_args
        every = " ".join(flags["cxx"] + flags["nvcc"])
        for word in ("std", "fast", "arch", "threads", "GLIBCXX", "march"):
            assert word not in every
        assert ("-O3" in every) is (platform != "win32")
    assert make(platform="win32").extra_compile_args == {"cxx": ["/O2", "/bigobj"], "nvcc": []}
    # debug information only for who asks for it
    assert "-g0" in make().extra_compile_args["cxx"]
    assert "-g0" not in make({"CFLAGS": "-O0 -g3"}).extra_compile_args["cxx"]


def test_instruction_sets_of_microsofts_compiler():
    """It has one for a whole file."""
    own = make(platform="win32", target="win-amd64").own_flags
    assert own == {
        "cuda_core/cell_host_avx2.cpp": ["/arch:AVX2"],
        "cuda_core/cell_host_avx512.cpp": ["/arch:AVX512"],
    }
    assert set(own) <= set(HOST_SOURCES)
    for platform, target in (
        ("win32", "win-arm64"),
        ("win32", "win32"),
        ("linux", "linux-x86_64"),
        ("darwin", "macosx-11.0-universal2"),
    ):
        assert make(platform=platform, target=target).own_flags == {}


def test_the_number_of_compilers_is_torchs_matter():
    for number in ("1", "no number"):
        assert make({"MAX_JOBS": number}) == make()


def test_openmp_for_gcc_on_linux_only():
    """Others bring a runtime of their own, beside the one that torch has loaded."""
    for platform in ("linux", "darwin", "win32"):
        for is_gcc in (True, False):
            flags = make(platform=platform, compiler=Compiler("c++", is_gcc=is_gcc))
            found = "openmp" in " ".join(flags.extra_compile_args["cxx"])
            assert found is (platform == "linux" and is_gcc)
    assert "-fopenmp" not in make().extra_compile_args["nvcc"]


def test_macros_reach_the_compiler_with_their_quotes():
    assert ("LLTM_VERSION", '"0.1.0"') in make().define_macros
    assert ("LLTM_VERSION", '\\"0.1.0\\"') in make(platform="win32").define_macros


def test_windows_shell():
    shell = {"VSCMD_ARG_TGT_ARCH": "x64"}
    assert make(shell, "win32").environment["DISTUTILS_USE_SDK"] == "1"
    assert "DISTUTILS_USE_SDK" not in make({}, "win32").environment
    assert "DISTUTILS_USE_SDK" not in make(shell, "linux").environment


@pytest.mark.parametrize(
    "platform, facts, words",
    [
        ("win32", {"compiler": None}, ["cl.exe", "vcvars64.bat"]),
        ("win32", {**CPU_TORCH, "compiler": None}, ["cl.exe", "vcvars64.bat"]),
        (
            "win32",
            {**OLD_TORCH, "toolkit": CU115, "compiler": Compiler("C:/vs/cl.exe", "1930")},
            ["11.5", "1910", "1929", "1930", "C:/vs/cl.exe", "-allow-unsupported-compiler"],
        ),
        (
            "linux",
            {"toolkit": Toolkit("/a/nvcc", "13.0", "/a", headers_version="12.8")},
            ["/a/nvcc", "13.0", "12.8", "CUDA_HOME"],
        ),
        ("linux", {"torch_cuda": "13.2"}, ["13.0", "13.2"]),
    ],
)
def test_warnings(platform, facts, words):
    (message,) = make(platform=platform, **facts).messages
    assert [word for word in words if word not in message] == []


def test_no_warning_on_a_sound_machine():
    assert make().messages == []
    assert make(**CPU_TORCH, toolkit=None).messages == []
    fits = {**OLD_TORCH, "toolkit": CU115, "compiler": Compiler("cl.exe", "1929")}
    assert make(platform="win32", **fits).messages == []


def test_objects_of_two_configurations_never_meet():
    plans = [make(), make({"LLTM_WITH_CUDA": "0"}), make(**CPU_TORCH)]
    plans.append(make(torch_version="2.15.0+cu130"))
    assert len({p.flavour for p in plans}) == len(plans)
    # a folder name on every system
    assert not any(set(p.flavour) & set('/\\:*?"<>| ') for p in plans)


def test_every_source_is_listed_and_short():
    assert sorted(HOST_SOURCES) == files("cuda_core", "bindings", suffixes=(".cpp", ".c"))
    assert sorted(CUDA_SOURCES) == files("cuda_core", suffixes=(".cu",))
    assert files("bindings", suffixes=(".cu", ".cuh")) == []  # torch's headers never meet nvcc
    assert max(map(len, HOST_SOURCES + CUDA_SOURCES)) <= 40


def test_the_bindings_are_one_file(tmp_path):
    path = write_together(str(tmp_path / "new folder"))
    with open(path, encoding="utf-8") as file:
        assert file.read().split() == [word for s in TOGETHER for word in ("#include", f'"{s}"')]
    assert {"bindings/module.cpp", *TOGETHER} == set(files("bindings", suffixes=(".cpp",)))
    os.utime(path, (1, 1))
    write_together(str(tmp_path / "new folder"))
    assert os.stat(path).st_mtime == 1  # ninja compiles what is newer than its object
    assert "." in make().include_dirs  # the includes are relative to the checkout


def test_headers_of_wheels_come_last_and_only_where_they_can():
    folders = {"wheel_include_dirs": ("/site/nvidia/cu13/include",)}
    flag = "-idirafter/site/nvidia/cu13/include"
    assert flag in make(**folders).extra_compile_args["cxx"]
    assert flag not in make({"LLTM_WITH_CUDA": "0"}, **folders).extra_compile_args["cxx"]
    windows = make(platform="win32", **folders)
    assert not any("nvidia" in flag for flag in windows.extra_compile_args["cxx"])

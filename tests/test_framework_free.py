"""The one rule of the architecture: the core never sees a framework, and dependencies run one way.

torch's BuildExtension hands torch's include path to every source, so a stray include in the core
would compile without a word. Only these tests and `test_core_alone.py` notice.
"""

import re

import pytest
from repository import ROOT, cxx_files, files, read, run, tool

# Plain C and CUDA. string.h is there for memcpy, the one legal way to read a float's bits, and the
# two at the end to ask the processor what it can.
ALLOWED_IN_CORE = {
    "stdint.h",
    "math.h",
    "string.h",
    "cuda_runtime.h",
    "cuda_fp16.h",
    "cuda_bf16.h",
    "cpuid.h",
    "intrin.h",
}
CORE = files("cuda_core", suffixes=(".h", ".cuh", ".cpp", ".cu"))
CORE_HEADERS = files("cuda_core", suffixes=(".h", ".cuh"))
BINDINGS = files("bindings", suffixes=(".h", ".cpp"))


def without_comments(text):
    return re.sub(r"//[^\n]*|/\*.*?\*/", "", text, flags=re.DOTALL)


def includes(path):
    """What a file includes; every #include has to be a plain one, so that this list is complete."""
    lines = re.findall(r"^\s*#\s*include\b[^\n]*", without_comments(read(path)), re.MULTILINE)
    names = re.findall(r'^\s*#\s*include\s*[<"]([^>"]+)[>"]', "\n".join(lines), re.MULTILINE)
    assert len(names) == len(lines), f"{path} has an #include that cannot be read here: {lines}"
    return names


def own(folder):
    return {path.split("/", 1)[1] for path in files(folder, suffixes=(".h", ".cuh"))}


def test_there_is_something_to_check():
    assert "cuda_core/lltm.h" in CORE_HEADERS and "bindings/dispatch.h" in BINDINGS


@pytest.mark.parametrize("path", CORE)
def test_core_includes_plain_c_cuda_and_itself(path):
    assert set(includes(path)) - ALLOWED_IN_CORE - own("cuda_core") == set()


@pytest.mark.parametrize("path", BINDINGS)
def test_bindings_know_the_core_by_lltm_h_only(path):
    names = set(includes(path))
    assert names & own("cuda_core") <= {"lltm.h"}
    assert [name for name in names if "cuda_core" in name or ".." in name] == []
    # nvcc is not asked to read torch's headers, and CUDA's are reached through torch only
    assert [name for name in names if name.endswith((".cu", ".cuh"))] == []
    cuda = {name for name in names if "cuda" in name.lower()}
    allowed = {
        "bindings/dispatch.h": {"c10/cuda/CUDAGuard.h", "c10/cuda/CUDAStream.h"},
        "bindings/cublas.h": {"ATen/cuda/CUDAContext.h"},
    }
    assert cuda <= allowed.get(path, set())


def test_dtype_dispatch_and_cuda_switch_are_in_one_file():
    for word in (r"\bAT_DISPATCH", r"#\s*if.*\bLLTM_WITH_CUDA\b"):
        places = [path for path in BINDINGS if re.search(word, without_comments(read(path)))]
        assert places == ["bindings/dispatch.h"], word


def test_core_does_not_know_how_it_is_built():
    for path in CORE:
        assert "LLTM_WITH_CUDA" not in read(path), path


def test_python_reaches_the_core_through_the_bindings_only():
    for path in files("lltm_decoupled", suffixes=(".py", ".pyi")):
        assert not re.search(r"\bctypes\b|\bcffi\b", read(path)), path


def test_every_cxx_file_belongs_to_one_side():
    assert sorted(CORE + BINDINGS) == cxx_files()


def compiler(name):
    return tool(name) or pytest.skip(f"no {name} on PATH")


def compile_alone(tmp_path, path, *command):
    source = tmp_path / ("alone.c" if "c" in command else "alone.cpp")
    source.write_text(f'#include "{path.split("/", 1)[1]}"\n', encoding="utf-8")
    status, output = run(*command, "-Wall", "-Werror", "-I", ROOT / "cuda_core", source)
    assert status == 0, output


@pytest.mark.parametrize("path", [path for path in CORE_HEADERS if path.endswith(".h")])
@pytest.mark.parametrize("standard", ["c++14", "c++17", "c++20"])
def test_header_compiles_alone(tmp_path, path, standard):
    # a header's own static functions are unused when nothing follows it
    quiet = ("-Wno-unused-function", "-fsyntax-only", "-pedantic")
    compile_alone(tmp_path, path, compiler("g++"), f"-std={standard}", *quiet)


def test_lltm_h_is_c99(tmp_path):
    strict = ("-std=c99", "-pedantic", "-Wextra", "-Wstrict-prototypes", "-fsyntax-only")
    compile_alone(tmp_path, "cuda_core/lltm.h", compiler("gcc"), "-x", "c", *strict)

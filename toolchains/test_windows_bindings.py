"""bindings/*.cpp against the headers of torch's Windows wheels: 32-bit long, `_WIN32` branches.

MinGW's g++ reads them; it checks types and does not link. The CUDA branch is read with CUDA 11.7's
headers and a stand-in for the one header that only a CUDA build of torch has.
"""

import shutil

import pytest
from matrix import find_python, output_of
from repository import files
from tools import CORE, MINGW, ROOT, STANDINS, missing, package, program, run, succeed

BINDINGS = files("bindings", suffixes=(".cpp",))
TORCH = {"torch-oldest-windows": ("c++14", "3.10"), "torch-newest-windows": ("c++20", "3.11")}


@pytest.fixture
def python_headers(tmp_path):
    """A copy, for Python.h includes the pyconfig.h beside it."""

    def copy(version):
        python, _ = find_python([version])
        if python is None:
            missing(f"no Python {version}")
        asked = "import sysconfig; print(sysconfig.get_path('include'))"
        target = tmp_path / "python"
        shutil.rmtree(str(target), ignore_errors=True)
        shutil.copytree(output_of(python, "-c", asked), str(target))
        shutil.copy(str(STANDINS / "python" / "pyconfig.h"), str(target))
        return target

    return copy


@pytest.fixture
def compiler(tmp_path, python_headers):
    def prepare(torch, with_cuda):
        standard, python = TORCH[torch]
        include = package(torch)
        folders = [CORE, ROOT / "bindings", include, include / "torch/csrc/api/include"]
        folders.append(python_headers(python))
        flags = [f"-std={standard}", "-w", "-O0", "-DTORCH_EXTENSION_NAME=_C", '-DLLTM_VERSION=""']
        # makes TORCH_API empty: GCC refuses what MSVC takes, a definition marked dllimport
        flags.append("-DC10_USING_CUSTOM_GENERATED_MACROS")
        if with_cuda:
            folders += [STANDINS / "torch", package("cuda117", "include")]
            flags.append("-DLLTM_WITH_CUDA")
        flags += [f"-I{folder}" for folder in folders]
        flags += ["-include", STANDINS / "torch" / "mingw_assert.h"]
        return [program(MINGW + "g++-posix", MINGW + "g++"), *flags]

    return prepare


# Without CUDA only one header reads differently: not again with the newest torch, which takes long.
@pytest.mark.parametrize(
    "torch, with_cuda",
    [
        ("torch-newest-windows", True),
        ("torch-oldest-windows", True),
        ("torch-oldest-windows", False),
    ],
    ids=["newest-cuda", "oldest-cuda", "oldest-cpu"],
)
def test_types_agree(compiler, tmp_path, torch, with_cuda):
    # in one piece: parsing torch's headers is most of the time
    source = tmp_path / "bindings.cpp"
    text = "".join(f'#include "{ROOT / path}"\n' for path in BINDINGS)
    source.write_text(text, encoding="utf-8")
    succeed(*compiler(torch, with_cuda), "-fsyntax-only", source)


# A build joins most of them into one file: what one includes another one may lack.
@pytest.mark.parametrize("path", BINDINGS)
def test_each_includes_what_it_needs(compiler, path):
    succeed(*compiler("torch-oldest-windows", False), "-fsyntax-only", ROOT / path)


# What is right where a long has 64 bits, and wrong on Windows.
@pytest.mark.parametrize(
    "bad",
    [
        "int64_t* p = static_cast<long*>(nullptr);",
        "std::vector<long> sizes; at::IntArrayRef f() { return sizes; }",
        'static_assert(sizeof(long) == sizeof(void*), "LP64");',
    ],
)
def test_rejects(compiler, tmp_path, bad):
    source = tmp_path / "bad.cpp"
    source.write_text(f"#include <c10/util/ArrayRef.h>\n{bad}\n", encoding="utf-8")
    status, output = run(*compiler("torch-oldest-windows", False), "-fsyntax-only", source)
    assert status != 0 and "error" in output, output
    source.write_text("#include <c10/util/ArrayRef.h>\n", encoding="utf-8")
    succeed(*compiler("torch-oldest-windows", False), "-fsyntax-only", source)

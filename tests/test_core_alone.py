"""The core built, linked and called without torch: by g++, by nvcc, and by a bare Python."""

import ctypes
import os
import platform
import re
import sys

import pytest
from repository import ROOT, files, read, run, tool

from build_support.probe import find_toolkit
from build_support.sources import MSVC_OWN_FLAGS, OWN_FLAGS_MACRO

HOST = files("cuda_core", suffixes=(".cpp",))
CUDA = files("cuda_core", suffixes=(".cu",))
CORE = ROOT / "cuda_core"
# What torch's BuildExtension always says to nvcc.
TORCH_NVCC_DEFINES = [
    f"-D__CUDA_NO_{what}__"
    for what in ("HALF_OPERATORS", "HALF_CONVERSIONS", "BFLOAT16_CONVERSIONS", "HALF2_OPERATORS")
]
# What GCC calls the instructions that Microsoft's compiler may use with such a flag.
HASWELL = ("-mavx2", "-mfma", "-mbmi", "-mbmi2", "-mlzcnt", "-mmovbe", "-mf16c")
GCC_FLAGS = {
    "/arch:AVX2": HASWELL,
    "/arch:AVX512": (*HASWELL, *(f"-mavx512{part}" for part in ("f", "dq", "cd", "bw", "vl"))),
}
needs_elf = pytest.mark.skipif(
    not sys.platform.startswith("linux"), reason="links and reads ELF files"
)


def need(name):
    return tool(name) or pytest.skip(f"no {name} on PATH")


@pytest.fixture(scope="module")
def nvcc():
    toolkit, searched = find_toolkit(dict(os.environ))
    if toolkit is None:
        pytest.skip(f"no nvcc in {searched}")
    return toolkit.nvcc


def compile_all(compiler, sources, folder, *flags, own_flags=None):
    objects = []
    for source in sources:
        objects.append(folder / (source.replace("/", "-") + ".o"))
        own = (own_flags or {}).get(source, ())
        command = (compiler, *flags, *own, "-I", CORE, "-c", ROOT / source, "-o", objects[-1])
        status, output = run(*command)
        assert status == 0, output
    return objects


def as_microsofts_compiler_is_told():
    """(flags of all host files, flags of each) for GCC."""
    own = {source: GCC_FLAGS[flag] for source, (flag,) in MSVC_OWN_FLAGS.items()}
    return (f"-D{OWN_FLAGS_MACRO}",), own


@pytest.fixture(scope="module", params=["pragmas", "flags"])
def host_objects(request, tmp_path_factory):
    """Both ways to compile a file for another instruction set."""
    flags, own = ("-std=c++14", "-O1", "-fPIC", "-Wall", "-Wextra", "-Werror"), None
    if request.param == "flags":
        if platform.machine() not in ("x86_64", "AMD64"):
            pytest.skip("flags for x86-64")
        macros, own = as_microsofts_compiler_is_told()
        flags += macros
    folder = tmp_path_factory.mktemp("host")
    return compile_all(need("g++"), HOST, folder, *flags, own_flags=own)


@pytest.fixture(scope="module")
def cuda_objects(tmp_path_factory, nvcc):
    """As C++14, without torch's include path; -arch by nvcc's default. Linked, never run."""
    flags = ("-std=c++14", "-Xcompiler", "-fPIC", "-Xcicc", "-O0", "-Xptxas", "-O0")
    flags += ("-Werror", "all-warnings")
    return compile_all(nvcc, CUDA, tmp_path_factory.mktemp("cuda"), *flags, *TORCH_NVCC_DEFINES)


@pytest.fixture(scope="module")
def host_library(host_objects, tmp_path_factory):
    library = tmp_path_factory.mktemp("library") / "liblltm_host.so"
    # -z defs: nothing may be left for somebody else to define
    status, output = run(need("g++"), "-shared", "-Wl,-z,defs", *host_objects, "-o", library)
    assert status == 0, output
    return library


def symbols(path, *options):
    status, output = run(need("nm"), *options, path)
    assert status == 0, output
    return {line.split()[-1].split("@")[0] for line in output.splitlines() if line.strip()}


def declared(device):
    """The function names of lltm.h for one device, from the preprocessor."""
    status, output = run(need("gcc"), "-E", "-P", "-x", "c", CORE / "lltm.h")
    assert status == 0, output
    names = set(re.findall(r"\b(lltm_\w+)\s*\(", output))
    cuda = {name for name in names if "_cuda" in name}
    return cuda if device == "cuda" else names - cuda


# A launch costs nothing on a CPU: no host twin fuses the products with the rest. Products have no
# CUDA twin where cuBLAS is faster, and those of half types have none on a CPU.
ONE_DEVICE = (
    "lltm_cell_fused_",
    "lltm_step_fused_",
    "lltm_sequence_",
    "lltm_gate_products_",
    "lltm_gradient_products_",
    "lltm_panel_columns_",
    "lltm_pack_matrix_",
    "lltm_multiply_",
    "lltm_numbers_to_",
)


def test_header_declares_both_devices_alike():
    def names(device):
        return {
            name.replace(device, "")
            for name in declared(device)
            if name.count("_") > 2 and not name.startswith(ONE_DEVICE)
        }

    assert names("cpu") == names("cuda") and len(names("cpu")) >= 4


def check_exports(names, device):
    """C names: exactly the header's. C++ names: the core's own namespace, shared by its files."""
    assert {name for name in names if name.startswith("lltm_")} == declared(device)
    cxx = {name for name in names if name.startswith("_Z")}
    known = ("_ZN4lltm", "_ZNK4lltm", "_ZN4dim3")  # dim3: the constructors of CUDA's own header
    assert [name for name in cxx if not name.startswith(known)] == []


@needs_elf
def test_host_library_exports_the_header(host_library):
    check_exports(symbols(host_library, "-D", "--defined-only"), "cpu")


@needs_elf
def test_cuda_objects_export_the_header(cuda_objects):
    names = set()
    for path in cuda_objects:
        names |= symbols(path, "--extern-only", "--defined-only")
    check_exports(names, "cuda")


@needs_elf
def test_variants_share_nothing(host_objects):
    """The linker keeps one of two equal functions, and it may be that of the wrong file."""
    for path in host_objects:
        if "avx" in path.name:
            names = symbols(path, "--extern-only", "--defined-only")
            table = re.compile(r"_ZN4lltm\d+host_(cell|step|products)_avx\w+E")
            assert [name for name in names if not table.fullmatch(name)] == []


@needs_elf
def test_the_instruction_set_is_this_cpus(host_library):
    cpu = set()
    if platform.machine() == "x86_64":
        with open("/proc/cpuinfo", encoding="ascii") as file:
            cpu = set(file.read().split("flags", 1)[1].split("\n", 1)[0].split())
    expected = 16
    library = ctypes.CDLL(str(host_library))
    with open("/proc/cpuinfo", encoding="ascii") as file:
        facts = dict(re.findall(r"^(\S[^:\t]*?)\s*:\s*(.*)$", file.read(), re.MULTILINE))
    amd = facts.get("vendor_id") == "AuthenticAMD"
    assert library.lltm_processor() == (amd and (2 if int(facts["cpu family"]) >= 26 else 1))
    if {"avx2", "fma", "bmi1", "bmi2", "abm", "movbe", "f16c"} <= cpu:
        expected = 32
        if {"avx512f", "avx512dq", "avx512cd", "avx512bw", "avx512vl"} <= cpu:
            expected = 64
    assert library.lltm_vector_bytes() == expected


# A C++ library, torch, Python, cuBLAS. (Not __gxx_personality_v0: `noexcept` alone needs it.)
FOREIGN = re.compile(r"\b(std|c10|at|torch|pybind11)::|__cxa_throw|\bcublas|\bPy[A-Z_]")


def foreign(paths):
    """The undefined symbols that the core must not have, with their C++ names spelled out."""
    found = []
    for path in paths:
        status, output = run(need("nm"), "-u", "-C", path)
        assert status == 0, output
        found += [line.strip() for line in output.splitlines() if FOREIGN.search(line)]
    return found


@needs_elf
def test_host_objects_need_no_cxx_library(host_objects):
    assert foreign(host_objects) == []


@needs_elf
def test_cuda_objects_need_no_cxx_library(cuda_objects):
    assert foreign(cuda_objects) == []


@needs_elf
def test_foreign_symbols_are_seen(tmp_path):
    source, compiled = tmp_path / "foreign.cpp", tmp_path / "foreign.o"
    source.write_text(
        "#include <string>\nnamespace c10 { void guard(); }\n"
        "std::string f(int n) { c10::guard(); if (n) throw 1; return std::to_string(n); }\n",
        encoding="utf-8",
    )
    status, output = run(need("g++"), "-c", source, "-o", compiled)
    assert status == 0, output
    seen = " ".join(foreign([compiled]))
    assert "c10::guard" in seen and "__cxa_throw" in seen and "std::" in seen


@needs_elf
@pytest.mark.parametrize("dtype, tolerance", [("float", 2e-6), ("double", 1e-14)])
def test_host_library_computes_the_cell(host_library, dtype, tolerance):
    """In a Python without site-packages: the core works where torch does not even exist."""
    script = ROOT / "tests" / "core_by_ctypes.py"
    status, output = run(sys.executable, "-I", "-S", script, host_library, dtype, tolerance)
    assert status == 0, output
    assert output.strip() == "agrees"


def test_the_script_is_torch_free():
    assert "import torch" not in read("tests/core_by_ctypes.py")

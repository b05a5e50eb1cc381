"""Every .cu through the Windows front end of nvcc, `cudafe++.exe`, in Microsoft mode.

It is nvcc 13.0's, the oldest that can be had, reading CUDA 11.7's headers. The C and C++ headers of
MSVC are stand-ins. The preprocessor is GCC's, told to define what cl defines.
"""

import pytest
from tools import CORE, CUDA_SOURCES, ROOT, STANDINS, package, program, succeed, wine

MSVC = 1929  # Visual Studio 2019 16.11, which CUDA 11.5 takes
DEFINES = {
    "_MSC_VER": MSVC,
    "_MSC_FULL_VER": f"{MSVC}30148",
    "_MSC_EXTENSIONS": 1,
    "_MSVC_LANG": "201402L",
    "_WIN32": 1,
    "_WIN64": 1,
    "_M_X64": 100,
    "_M_AMD64": 100,
    "_MT": 1,
    "_DLL": 1,
    "_CPPRTTI": 1,
    "_CPPUNWIND": 1,
    "_INTEGRAL_MAX_BITS": 64,
    "_WCHAR_T_DEFINED": 1,
    "_NATIVE_WCHAR_T_DEFINED": 1,
    "__CUDACC__": 1,
    "__NVCC__": 1,
    "__CUDACC_VER_MAJOR__": 11,
    "__CUDACC_VER_MINOR__": 7,
    "__CUDACC_VER_BUILD__": 99,
    "__CUDA_ARCH_LIST__": "500,860",
}


def front_end(source, folder):
    """(exit status, output); the flags are those that nvcc.exe gives it."""
    preprocessed = folder / "source.ii"
    output = succeed(
        *(program("g++"), "-E", "-undef", "-nostdinc", "-w", "-std=c++14"),
        *(f"-D{name}={value}" for name, value in DEFINES.items()),
        *(f"-I{path}" for path in (package("cuda117", "include"), STANDINS / "msvc", CORE)),
        *("-include", "cuda_runtime.h", "-x", "c++", source, "-o", preprocessed),
    )
    assert output == ""
    result = folder / "source.cudafe1.cpp"
    status, output = wine(
        *(package("cudafe130-windows", "cudafe++.exe"), "--ms_c++14", "--m64"),
        *(f"--microsoft_version={MSVC}", f"--msvc_target_version={MSVC}"),
        *("--static-host-stub", "--device-hidden-visibility", "--parse_templates"),
        *("--allow_managed", "--display_error_number", "--compiler_bindir", "Z:/x"),
        *("--orig_src_file_name", "source.cu", "--orig_src_path_name", "source.cu"),
        *("--gen_c_file_name", result, "--stub_file_name", "source.stub.c"),
        *("--gen_module_id_file", "--module_id_file_name", folder / "source.module_id"),
        preprocessed,
        cwd=folder,
    )
    assert result.exists() == (status == 0), output
    return status, output


@pytest.mark.parametrize("source", CUDA_SOURCES)
def test_accepts(source, tmp_path):
    status, output = front_end(ROOT / source, tmp_path)
    assert status == 0, output


# All but the assertions are accepted by nvcc on Linux.
BAD = {
    "attribute": "__attribute__((noinline)) int f() { return 1; }",
    "spelled-out operator": "bool f(bool a) { return not a; }",
    "array of variable length": "int f(int n) { int v[n]; return v[0]; }",
    "designated initialiser": "struct S { int a; }; S s = {.a = 1};",
    "mathematical constant": "#include <math.h>\ndouble x = M_PI;",
    "conditional without a middle": "int f(int a) { return a ?: 1; }",
    "statement expression": "int f() { return ({ 1; }); }",
    "restrict dropped": "template <class T> __global__ void k(const T* __restrict__ p) {}\n"
    "template __global__ void k<float>(const float*);",
    "size of long": '#include <stdint.h>\nstatic_assert(sizeof(long) == 8, "LP64");',
    "pointer to long": "#include <stdint.h>\nlong* p; int64_t* q = p;",
}


@pytest.mark.parametrize("bad", BAD.values(), ids=list(BAD))
def test_rejects(bad, tmp_path):
    source = tmp_path / "bad.cu"
    source.write_text(bad + "\n", encoding="utf-8")
    status, output = front_end(source, tmp_path)
    assert status != 0 and "error" in output, output


def test_accepts_a_kernel_and_its_launch(tmp_path):
    """So that the rejections above are for their own reasons."""
    source = tmp_path / "good.cu"
    source.write_text(
        "__global__ void k(float* p) { *p = 1; }\n"
        'static_assert(sizeof(long) == 4 && sizeof(void*) == 8, "LLP64");\n'
        "void f(float* p) { k<<<1, 1>>>(p); }\n",
        encoding="utf-8",
    )
    status, output = front_end(source, tmp_path)
    assert status == 0, output

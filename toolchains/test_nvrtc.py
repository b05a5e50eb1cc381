"""Every kernel through NVRTC 11.7 and 11.8: NVIDIA's own front end, optimiser and assembler of CUDA
11, in C++14 and with torch's defines.

11.7 is the oldest that can be had; CUDA 11.5's is of the same series.
"""

import functools

import nvrtc
import pytest
from tools import CUDA_SOURCES, STANDINS, package, program, run

# One for each way that the sources and CUDA's half types go: without arithmetic in half, with it in
# bfloat16 too, and with Hopper's own instructions, which 11.8 added. What has it in half alone is
# left to test_windows_nvrtc.py.
ARCHS = {"nvrtc117": (50, 86), "nvrtc118": (90,)}


@pytest.fixture(scope="module")
def host(tmp_path_factory):
    return nvrtc.build_host(program("gcc", "cc"), tmp_path_factory.mktemp("host") / "nvrtc", "-ldl")


def runner(host, cuda):
    return functools.partial(run, host, package(cuda, "lib/libnvrtc.so.11.2"))


@pytest.mark.parametrize(
    "cuda, arch, source",
    [(c, arch, s) for c, archs in ARCHS.items() for arch in archs for s in CUDA_SOURCES],
)
def test_kernels_compile(host, tmp_path, cuda, arch, source):
    flags = nvrtc.options(f"sm_{arch}", package(cuda))
    output = nvrtc.check(runner(host, cuda), source, tmp_path, *flags)
    assert f"NVRTC {cuda[-3:-1]}.{cuda[-1]}," in output


# What a newer compiler takes, and 11.7 in C++14 does not.
@pytest.mark.parametrize(
    "bad",
    [
        "template <bool b> __device__ int f() { if constexpr (b) return 1; return 0; }"
        "__device__ int g() { return f<true>(); }",  # what is never used is not looked at
        "struct S { int a; }; __device__ S s = {.a = 1};",
        "namespace a::b { __device__ int n; }",
    ],
)
def test_newer_language_is_refused(host, tmp_path, bad):
    source = tmp_path / "bad.cu"
    source.write_text(bad + "\n", encoding="utf-8")
    flags = ("--std=c++14", "--gpu-architecture=sm_80", f"-I{STANDINS / 'nvrtc'}")
    status, output = runner(host, "nvrtc117")(source, tmp_path / "cubin", *flags)
    assert status != 0 and "error" in output, output

"""NVRTC 11.7's Windows library, run by wine: device code where a long has 32 bits."""

import functools

import nvrtc
import pytest
from tools import CUDA_SOURCES, MINGW, STANDINS, package, program, wine


@pytest.fixture(scope="module")
def host(tmp_path_factory):
    compiler = program(MINGW + "gcc-posix", MINGW + "gcc")
    return nvrtc.build_host(compiler, tmp_path_factory.mktemp("host") / "nvrtc.exe", "-static")


@pytest.fixture
def library(host):
    # it looks for its second library in the current folder
    folder = package("nvrtc117-windows")
    return functools.partial(wine, host, "nvrtc64_112_0.dll", cwd=folder)


@pytest.mark.parametrize("source", CUDA_SOURCES)
def test_kernels_compile(library, tmp_path, source):
    flags = nvrtc.options("sm_70", package("cuda117"))
    output = nvrtc.check(library, source, tmp_path, *flags)
    assert "NVRTC 11.7, host long 4 bytes" in output


@pytest.mark.parametrize("size, accepted", [(4, True), (8, False)])
def test_long_has_32_bits(library, tmp_path, size, accepted):
    source = tmp_path / "long.cu"
    source.write_text(f'static_assert(sizeof(long) == {size}, "long");\n', encoding="utf-8")
    flags = ("--std=c++14", "--gpu-architecture=sm_70", f"-I{STANDINS / 'nvrtc'}")
    status, output = library(source, tmp_path / "cubin", *flags)
    assert (status == 0) == accepted, output

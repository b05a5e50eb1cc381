"""The torch-free host code as a Windows library: built by MinGW, loaded and called under wine.

GCC's front end and C library, but Windows' data model, calling convention and executable format.
"""

import re

import pytest
from test_core_alone import declared
from tools import CORE, HOST_SOURCES, HOSTS, MINGW, ROOT, program, run, succeed, wine


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    folder = tmp_path_factory.mktemp("windows")
    library, host = folder / "lltm.dll", folder / "host.exe"
    strict = ("-O2", "-Wall", "-Wextra", "-Werror", "-I", CORE)
    succeed(
        *(program(MINGW + "g++-posix", MINGW + "g++"), "-std=c++14", "-shared", "-static"),
        *(*strict, "-fno-trapping-math"),
        *(*(ROOT / source for source in HOST_SOURCES), "-o", library),
    )
    compiler = program(MINGW + "gcc-posix", MINGW + "gcc")
    succeed(compiler, "-std=c99", *strict, HOSTS / "core.c", library, "-o", host)
    return folder


def test_computes_the_cell(built):
    status, output = wine(built / "host.exe", cwd=built)
    assert status == 0, output
    assert output.split("\n")[0].strip() == "long 4 bytes, agrees"


def test_the_same_program_agrees_on_this_system(tmp_path):
    host, harness = tmp_path / "host", tmp_path / "host.o"
    succeed(program("gcc"), "-std=c99", "-c", "-I", CORE, HOSTS / "core.c", "-o", harness)
    sources = [ROOT / source for source in HOST_SOURCES]
    succeed(program("g++"), "-std=c++14", "-I", CORE, *sources, harness, "-lm", "-o", host)
    assert run(host)[1].strip().endswith("agrees")


def test_exports_the_header(built):
    output = succeed(program(MINGW + "objdump"), "-p", built / "lltm.dll")
    exported = set(re.findall(r"\[ *\d+\][^\n]*\b(lltm_\w+)$", output, re.MULTILINE))
    assert exported == declared("cpu")

"""The torch-free host code as a Windows library: built by MinGW, loaded and called under wine.

GCC's front end and C library, but Windows' data model, calling convention and executable format.
"""

import re

import pytest
from test_core_alone import as_microsofts_compiler_is_told, compile_all, declared
from tools import CORE, HOST_SOURCES, HOSTS, MINGW, ROOT, program, run, succeed, wine


@pytest.mark.parametrize("told", ["by pragmas", "as Microsoft's compiler"])
def test_library(tmp_path, told):
    """Its exports, and what it computes; one test, for building it is most of the time."""
    library, host = tmp_path / "lltm.dll", tmp_path / "host.exe"
    strict = ("-O1", "-Wall", "-Wextra", "-Werror", "-I", CORE)
    cxx = program(MINGW + "g++-posix", MINGW + "g++")
    macros, own = ((), None) if told == "by pragmas" else as_microsofts_compiler_is_told()
    flags = ("-std=c++14", *strict, "-fno-trapping-math", *macros)
    objects = compile_all(cxx, HOST_SOURCES, tmp_path, *flags, own_flags=own)
    succeed(cxx, "-shared", "-static", *objects, "-o", library)
    compiler = program(MINGW + "gcc-posix", MINGW + "gcc")
    succeed(compiler, "-std=c99", *strict, HOSTS / "core.c", library, "-o", host)

    output = succeed(program(MINGW + "objdump"), "-p", library)
    exported = set(re.findall(r"\[ *\d+\][^\n]*\b(lltm_\w+)$", output, re.MULTILINE))
    assert exported == declared("cpu")

    status, output = wine(host, cwd=tmp_path)
    assert status == 0, output
    assert output.split("\n")[0].strip() == "long 4 bytes, agrees"


def test_the_same_program_agrees_on_this_system(tmp_path):
    host, harness = tmp_path / "host", tmp_path / "host.o"
    succeed(program("gcc"), "-std=c99", "-c", "-I", CORE, HOSTS / "core.c", "-o", harness)
    sources = [ROOT / source for source in HOST_SOURCES]
    succeed(program("g++"), "-std=c++14", "-I", CORE, *sources, harness, "-lm", "-o", host)
    assert run(host)[1].strip().endswith("agrees")

"""The torch-free host code by clang in Microsoft's mode, with cl's flags and macros, run by wine.

clang is told to deny its name, so that the code takes the way of Microsoft's compiler: no vector
types, no pragmas, a file for each instruction set. The headers are stand-ins; MinGW links.
"""

import pytest
from tools import CORE, HOST_SOURCES, HOSTS, MINGW, ROOT, STANDINS, program, run, succeed, wine

from build_support.plan import plan
from build_support.sources import OWN_FLAGS_MACRO

PLAN = plan({}, "win32", "2.4.0", None, target="win-amd64")
CL = (
    *("--driver-mode=cl", "--target=x86_64-pc-windows-msvc", "-fmsc-version=1929", "-U__clang__"),
    *("/nologo", "/c", "/W4", "/WX", "/X", f"-I{STANDINS / 'msvc'}", f"-I{CORE}"),
    *("/GS-", "/Gs1000000"),  # without what Microsoft's own library has for checks of the stack
)


def compiled(source, target, *flags):
    return run(program("clang++-14"), *CL, *flags, f"/Fo{target}", "--", source)


@pytest.mark.parametrize("standard", ["14", "20"])
def test_library(tmp_path, standard):
    objects = []
    for source in HOST_SOURCES:
        objects.append(tmp_path / (source.replace("/", "-") + ".o"))
        own = (f"-D{OWN_FLAGS_MACRO}", *PLAN.own_flags.get(source, ()))
        flags = (*PLAN.extra_compile_args["cxx"], f"/std:c++{standard}", *own)
        status, output = compiled(ROOT / source, objects[-1], *flags)
        assert status == 0, output
    host = tmp_path / "host.exe"
    compiler = program(MINGW + "gcc-posix", MINGW + "gcc")
    succeed(compiler, "-std=c99", "-I", CORE, HOSTS / "core.c", *objects, "-o", host)
    status, output = wine(host, cwd=tmp_path)
    assert status == 0, output
    assert output.split("\n")[0].strip() == "long 4 bytes, agrees"


def test_a_file_without_its_flags_is_refused(tmp_path):
    for source in PLAN.own_flags:
        status, output = compiled(ROOT / source, tmp_path / "x.o", f"-D{OWN_FLAGS_MACRO}")
        assert status != 0 and "flags of its own" in output
        # in a build that knows no flags of a file there is the baseline only
        status, output = compiled(ROOT / source, tmp_path / "x.o")
        assert status == 0, output

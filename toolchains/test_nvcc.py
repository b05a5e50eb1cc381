"""nvcc itself, as new as the machine has it, at every language level that a torch asks for."""

import os

import pytest
from test_core_alone import check_exports, symbols
from tools import CORE, CUDA_SOURCES, ROOT, TORCH_NVCC_DEFINES, missing, succeed

from build_support.plan import default_archs, numbers
from build_support.probe import find_toolkit

# torch up to 2.0 asks for 14, up to 2.12 for 17, later for 20
STANDARDS = ("c++14", "c++17", "c++20")


@pytest.fixture(scope="module")
def nvcc():
    toolkit, searched = find_toolkit(dict(os.environ))
    if toolkit is None:
        missing(f"no nvcc in {searched}")
    if numbers(toolkit.version) < (12, 0):
        missing(f"nvcc {toolkit.version} has no C++20")
    return toolkit


@pytest.mark.parametrize("standard", STANDARDS)
def test_standard(nvcc, standard, tmp_path):
    """For the oldest and the newest architecture of the default list; symbols are the header's."""
    archs = default_archs(nvcc.version).replace("+PTX", "").replace(".", "").split(";")
    names = set()
    for source in CUDA_SOURCES:
        compiled = tmp_path / (source.rsplit("/", 1)[1] + ".o")
        output = succeed(
            *(nvcc.nvcc, f"-std={standard}", "--expt-relaxed-constexpr", "-Werror", "all-warnings"),
            *(f"-gencode=arch=compute_{arch},code=sm_{arch}" for arch in (archs[0], archs[-1])),
            *(*TORCH_NVCC_DEFINES, "-O3", "-Xcompiler", "-fPIC,-Wall", "-I", CORE),
            *("-c", ROOT / source, "-o", compiled),
        )
        assert "warning" not in output, output
        names |= symbols(compiled, "--extern-only", "--defined-only")
    check_exports(names, "cuda")

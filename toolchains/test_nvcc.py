"""nvcc itself, as new as the machine has it, at every language level that a torch asks for."""

import os

import pytest
from test_core_alone import declared, symbols
from tools import CORE, CUDA_SOURCES, ROOT, TORCH_NVCC_DEFINES, missing, succeed

from build_support.plan import default_archs, numbers
from build_support.probe import find_toolkit

# torch up to 2.0 asks for 14, up to 2.12 for 17, later for 20. Each for the oldest architecture of
# this nvcc. One up to PTX for Hopper, whose own instructions are most of the compile time.
STANDARDS = {"c++14": False, "c++17": False, "c++20": True}
HOPPER = "-gencode=arch=compute_90,code=compute_90"
TWIN = "cuda_core/sequence_grid_bfloat16.cu"  # of float16's: the same templates


@pytest.fixture(scope="module")
def nvcc():
    toolkit, searched = find_toolkit(dict(os.environ))
    if toolkit is None:
        missing(f"no nvcc in {searched}")
    if numbers(toolkit.version) < (12, 0):
        missing(f"nvcc {toolkit.version} has no C++20")
    return toolkit


@pytest.mark.parametrize("source", CUDA_SOURCES)
@pytest.mark.parametrize("standard", list(STANDARDS))
def test_standard(nvcc, standard, source, tmp_path):
    oldest = default_archs(nvcc.version).split(";")[0].replace(".", "")
    hopper = [HOPPER] if STANDARDS[standard] and source != TWIN else []
    compiled = tmp_path / "compiled.o"
    output = succeed(
        *(nvcc.nvcc, f"-std={standard}", "--expt-relaxed-constexpr", "-Werror", "all-warnings"),
        *(f"-gencode=arch=compute_{oldest},code=sm_{oldest}", *hopper),
        *(*TORCH_NVCC_DEFINES, "-Xcicc", "-O0", "-Xptxas", "-O0"),
        *("-Xcompiler", "-fPIC,-Wall", "-I", CORE, "-c", ROOT / source, "-o", compiled),
    )
    assert "warning" not in output, output
    exported = symbols(compiled, "--extern-only", "--defined-only")
    assert {name for name in exported if name.startswith("lltm_")} <= declared("cuda")

"""The whole .cu files, host code and launches too, with CUDA 11.7's headers and assembler.

The front end is clang's, in C++14. The result is linked, and its symbols are compared with lltm.h.
"""

import os

import pytest
from test_core_alone import check_exports, foreign, symbols
from tools import CUDA_SOURCES, ROOT, STANDINS, TORCH_NVCC_DEFINES, package, program, run, succeed

from build_support.probe import find_toolkit

ARCHS = ("sm_50", "sm_70", "sm_86")


@pytest.fixture(scope="module")
def toolkit(tmp_path_factory):
    """CUDA 11.7 as far as its wheels go. They lack `fatbinary`: a newer one packs the results."""
    newer = program("fatbinary", find_nvcc_folder("fatbinary"))
    root = tmp_path_factory.mktemp("cuda")
    for part in ("include", "nvvm", "lib"):
        (root / part).symlink_to(package("cuda117", part), target_is_directory=True)
    (root / "bin").mkdir()
    (root / "bin" / "ptxas").symlink_to(package("cuda117", "bin/ptxas"))
    (root / "bin" / "fatbinary").symlink_to(STANDINS / "clang" / "fatbinary")
    return root, {"FATBINARY": newer}


def find_nvcc_folder(name):
    found, _ = find_toolkit(dict(os.environ))
    return os.path.join(found.home, "bin", name) if found else name


@pytest.fixture(scope="module")
def objects(toolkit, tmp_path_factory):
    root, env = toolkit
    folder = tmp_path_factory.mktemp("objects")
    found = []
    for source in CUDA_SOURCES:
        found.append(folder / (source.rsplit("/", 1)[1] + ".o"))
        output = succeed(
            *(program("clang++-14", "clang++"), "-x", "cuda", f"--cuda-path={root}"),
            *(f"--cuda-gpu-arch={arch}" for arch in ARCHS),
            *("-std=c++14", "-O2", "-fPIC", "-Wall", "-Werror", "-Wno-unknown-cuda-version"),
            *(*TORCH_NVCC_DEFINES, "-I", STANDINS / "clang"),
            *("-c", ROOT / source, "-o", found[-1]),
            env=env,
        )
        assert output == "", output
    return found


def test_objects_need_no_cxx_library(objects):
    assert foreign(objects) == []


def test_library_exports_the_header(toolkit, objects, tmp_path):
    library = tmp_path / "liblltm_cuda.so"
    (runtime,) = toolkit[0].glob("lib/libcudart.so.11*")
    # -z defs: nothing may be left for somebody else to define
    succeed(program("g++"), "-shared", "-Wl,-z,defs", *objects, runtime, "-o", library)
    check_exports(symbols(library, "-D", "--defined-only"), "cuda")


def test_every_architecture_is_there(objects):
    for path in objects:
        status, output = run(
            program("cuobjdump", find_nvcc_folder("cuobjdump")), "--list-elf", path
        )
        if status:
            pytest.skip("this cuobjdump does not read " + path.name)
        assert all(arch in output for arch in ARCHS), output

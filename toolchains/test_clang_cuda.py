"""The whole .cu files, host code and launches too, with CUDA 11.7's headers and assembler.

The front end is clang's, in C++14. The result is linked, and its symbols are compared with lltm.h.
"""

import os
import re
import struct

import pytest
from nvrtc import kernels
from test_core_alone import check_exports, foreign, symbols
from tools import CUDA_SOURCES, ROOT, STANDINS, TORCH_NVCC_DEFINES, package, program, succeed

from build_support.probe import find_toolkit

ARCHS = ("sm_50", "sm_86")


@pytest.fixture
def toolkit(tmp_path):
    """CUDA 11.7 as far as its wheels go. They lack `fatbinary`: a newer one packs the results."""
    newer = program("fatbinary", find_nvcc_folder("fatbinary"))
    root = tmp_path / "cuda"
    root.mkdir()
    for part in ("include", "nvvm", "lib"):
        (root / part).symlink_to(package("cuda117", part), target_is_directory=True)
    (root / "bin").mkdir()
    (root / "bin" / "ptxas").symlink_to(package("cuda117", "bin/ptxas"))
    (root / "bin" / "fatbinary").symlink_to(STANDINS / "clang" / "fatbinary")
    return root, {"FATBINARY": newer, "TMPDIR": str(tmp_path)}  # clang leaves its own files there


def find_nvcc_folder(name):
    found, _ = find_toolkit(dict(os.environ))
    return os.path.join(found.home, "bin", name) if found else name


def compile_all(toolkit, folder):
    root, env = toolkit
    for source in CUDA_SOURCES:
        compiled = folder / (source.rsplit("/", 1)[1] + ".o")
        output = succeed(
            *(program("clang++-14", "clang++"), "-x", "cuda", f"--cuda-path={root}"),
            *(f"--cuda-gpu-arch={arch}" for arch in ARCHS),
            *("-std=c++14", "-O1", "-fPIC", "-Wall", "-Werror", "-Wno-unknown-cuda-version"),
            *(*TORCH_NVCC_DEFINES, "-I", STANDINS / "clang"),
            *("-c", ROOT / source, "-o", compiled),
            env=env,
        )
        assert output == "", output
        yield compiled


def architectures(path):
    """Of the ELF images of GPUs inside an object: machine 190, and the number in the flags."""
    found = set()
    data = path.read_bytes()
    for match in re.finditer(rb"\x7fELF\x02\x01", data):
        header = data[match.start() : match.start() + 64]
        (machine,) = struct.unpack_from("<H", header, 18)
        (flags,) = struct.unpack_from("<I", header, 48)
        if machine == 190:
            found.add(f"sm_{flags & 0xFF}")
    return found


def test_library(toolkit, tmp_path):
    """One test, for the objects are most of the time."""
    objects = list(compile_all(toolkit, tmp_path))
    # clang ends a noexcept function by calling std::terminate itself; GCC leaves it to the unwinder
    assert [line for line in foreign(objects) if "std::terminate()" not in line] == []
    with_kernels = [path for path in objects if kernels(path)]
    assert len(with_kernels) >= 2
    assert [architectures(path) for path in with_kernels] == [set(ARCHS)] * len(with_kernels)

    library = tmp_path / "liblltm_cuda.so"
    (runtime,) = toolkit[0].glob("lib/libcudart.so.11*")
    # -z defs: nothing may be left for somebody else to define
    succeed(program("g++"), "-shared", "-Wl,-z,defs", *objects, runtime, "-o", library)
    check_exports(symbols(library, "-D", "--defined-only"), "cuda")

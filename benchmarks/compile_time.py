"""Times nvcc on the core's kernels alone, and on the same file with torch/extension.h in it.

    python benchmarks/compile_time.py [--arch sm_90]

The second is what a coupled CUDA extension compiles. Each is compiled once, on one core, to an
object file for one GPU architecture, with the language level that it needs: C++14 for the core,
what this torch asks for with its headers.
"""

import argparse
import os
import subprocess
import sys
import sysconfig
import tempfile
import time

import torch
from torch.utils import cpp_extension

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, ROOT)

from build_support import probe  # noqa: E402

KERNELS = os.path.join(ROOT, "cuda_core", "cell_kernels.cu")


def compile_seconds(nvcc, source, arguments):
    with tempfile.TemporaryDirectory() as folder:
        command = [nvcc, "-O3", "-c", source, "-o", os.path.join(folder, "kernels.o"), *arguments]
        start = time.perf_counter()
        subprocess.run(command, check=True)
        return time.perf_counter() - start


def torch_level():
    """The C++ level of this torch's headers."""
    version = tuple(int(n) for n in torch.__version__.split(".")[:2])
    return "c++20" if version >= (2, 13) else "c++17" if version >= (2, 1) else "c++14"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--arch", default="sm_90")
    options = parser.parse_args()
    toolkit = probe.find_toolkit(os.environ)[0]
    common = [f"-arch={options.arch}", "-I" + os.path.join(ROOT, "cuda_core")]
    alone = compile_seconds(toolkit.nvcc, KERNELS, [*common, "-std=c++14"])

    folders = [*cpp_extension.include_paths(), sysconfig.get_path("include")]
    with tempfile.TemporaryDirectory() as folder:
        coupled_source = os.path.join(folder, "coupled.cu")
        with open(KERNELS, encoding="utf-8") as kernels, open(coupled_source, "w") as coupled:
            coupled.write("#include <torch/extension.h>\n" + kernels.read())
        coupled_arguments = [*common, f"-std={torch_level()}", "--expt-relaxed-constexpr", "-w"]
        coupled_arguments += ["-DTORCH_EXTENSION_NAME=coupled", *("-I" + f for f in folders)]
        coupled = compile_seconds(toolkit.nvcc, coupled_source, coupled_arguments)

    print(f"nvcc {toolkit.version}, {options.arch}, torch {torch.__version__}")
    print(f"the core alone:               {alone:6.1f} s")
    print(f"the same, torch/extension.h:  {coupled:6.1f} s, {coupled / alone:.0f} times as long")


if __name__ == "__main__":
    main()

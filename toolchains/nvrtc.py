"""How the .cu files are given to NVRTC, which knows no host code, no launches and no C headers.

`-default-device` makes device functions of the host's, and with relocatable device code a launch
among them is a launch from the device. So the files are compiled as they are: the launchers are
what instantiates the kernels, and no list of kernels has to be kept.
"""

import re

from tools import CORE, HOSTS, ROOT, STANDINS, TORCH_NVCC_DEFINES, succeed

LEAST_KERNELS = 8  # in any .cu: two kernels of four types


def options(arch, cuda):
    """cuda: the toolkit whose headers are read."""
    flags = [f"--gpu-architecture={arch}", "--std=c++14", "-default-device", "-rdc=true"]
    folders = (CORE, STANDINS / "nvrtc", cuda / "include")
    return [*flags, *TORCH_NVCC_DEFINES, *(f"-I{folder}" for folder in folders)]


def build_host(compiler, target, *flags):
    succeed(compiler, "-O1", HOSTS / "nvrtc.c", "-o", target, *flags)
    return target


def kernels(cubin):
    """The names of the kernels of a cubin: each has a section for its code."""
    return set(re.findall(rb"\.text\.(\w*kernel\w*)", cubin.read_bytes()))


def check(run, source, cubin, *flags):
    """run: a function of the arguments of hosts/nvrtc.c after the library."""
    cubin.unlink() if cubin.exists() else None
    status, output = run(ROOT / source, cubin, *flags)
    assert status == 0, f"{source}: {output}"
    assert len(kernels(cubin)) >= LEAST_KERNELS, source
    return output

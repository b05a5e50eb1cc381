"""How the .cu files are given to NVRTC, which knows no host code, no launches and no C headers.

`-default-device` makes device functions of the host's, and with relocatable device code a launch
among them is a launch from the device. So the files are compiled as they are: the launchers are
what instantiates the kernels, and no list of kernels has to be kept.
"""

import re

from tools import CORE, HOSTS, ROOT, STANDINS, TORCH_NVCC_DEFINES, succeed

LAUNCHES = re.compile(r"<<<|GridTable|template int32_t launch_block")


def options(arch, cuda):
    """cuda: the toolkit whose headers are read."""
    flags = [f"--gpu-architecture={arch}", "--std=c++14", "-default-device", "-rdc=true"]
    folders = (CORE, STANDINS / "nvrtc", cuda / "include")
    flags += [*TORCH_NVCC_DEFINES, *(f"-I{folder}" for folder in folders)]
    return [*flags, f"-include={STANDINS / 'nvrtc' / 'host_runtime.h'}"]


def build_host(compiler, target, *flags):
    succeed(compiler, "-O1", HOSTS / "nvrtc.c", "-o", target, *flags)
    return target


def kernels(binary):
    """The names of the kernels of a cubin or an object: each has a section for its code."""
    return set(re.findall(rb"\.text\.(\w*kernel\w*)", binary.read_bytes()))


def check(run, source, folder, *flags):
    """run: a function of the arguments of hosts/nvrtc.c after the library."""
    cubin = folder / "cubin"
    status, output = run(ROOT / source, cubin, *flags)
    assert status == 0, f"{source}: {output}"
    launches = len(LAUNCHES.findall((ROOT / source).read_text(encoding="utf-8")))
    if launches == 1:
        assert kernels(cubin), source
    elif launches > 1:
        assert len(kernels(cubin)) >= 7 * launches // 2, source  # of types, sizes and layouts
    return output

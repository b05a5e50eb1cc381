"""How the .cu files are given to NVRTC, which knows no host code, no launches and no C headers.

`-default-device` makes device functions of the host's, and with relocatable device code a launch
among them is a launch from the device. So the files are compiled as they are: the launchers are
what instantiates the kernels, and no list of kernels has to be kept. Only tables of kernels, which
a host fills at their first use, are made to be filled at every use.
"""

import re

from tools import CORE, HOSTS, ROOT, STANDINS, TORCH_NVCC_DEFINES, succeed

TABLE = re.compile(r"\bstatic (const \w+ \w+\[\] = \{)(.*?)(\};)", re.DOTALL)
LAUNCHES = re.compile(r"<<<|GridTable")
ENTRY = re.compile(r"\w+<[^<>]*>\([^()]*\)")


def options(arch, cuda):
    """cuda: the toolkit whose headers are read."""
    flags = [f"--gpu-architecture={arch}", "--std=c++14", "-default-device", "-rdc=true"]
    folders = (CORE, STANDINS / "nvrtc", cuda / "include")
    flags += [*TORCH_NVCC_DEFINES, *(f"-I{folder}" for folder in folders)]
    return [*flags, f"-include={STANDINS / 'nvrtc' / 'host_runtime.h'}"]


def build_host(compiler, target, *flags):
    succeed(compiler, "-O1", HOSTS / "nvrtc.c", "-o", target, *flags)
    return target


def for_device(text, all_sizes):
    def fill(match):
        start, entries, end = match.groups()
        entries = ENTRY.findall(entries)
        return start + ", ".join(entries if all_sizes else entries[:1]) + end

    return TABLE.sub(fill, text)


def kernels(binary):
    """The names of the kernels of a cubin or an object: each has a section for its code."""
    return set(re.findall(rb"\.text\.(\w*kernel\w*)", binary.read_bytes()))


def check(run, source, folder, *flags, all_sizes=True):
    """run: a function of the arguments of hosts/nvrtc.c after the library. all_sizes: of a table
    of kernels, or the first only."""
    copy, cubin = folder / source.rsplit("/", 1)[1], folder / "cubin"
    for path in (ROOT / source, *CORE.glob("*.cuh")):
        text = path.read_text(encoding="utf-8")
        (folder / path.name).write_text(for_device(text, all_sizes), encoding="utf-8")
    cubin.unlink() if cubin.exists() else None
    status, output = run(copy, cubin, *flags)
    assert status == 0, f"{source}: {output}"
    launches = len(LAUNCHES.findall(copy.read_text(encoding="utf-8")))
    if launches == 1:
        assert kernels(cubin), source
    elif launches > 1:
        # two kernels of four types, or of four sizes; in one size of each, forward and backward
        assert len(kernels(cubin)) >= (8 if all_sizes else 2), source
    return output

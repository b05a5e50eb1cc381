"""How the .cu files are given to NVRTC, which knows no host code, no launches and no C headers.

`-default-device` makes device functions of the host's, and with relocatable device code a launch
among them is a launch from the device. So the files are compiled as they are: the launchers are
what instantiates the kernels, and no list of kernels has to be kept. Only tables of kernels that a
host fills when it loads the library are no more than declared, and filled in a function.
"""

import re

from tools import CORE, HOSTS, ROOT, STANDINS, TORCH_NVCC_DEFINES, succeed

TABLE = re.compile(r"^const (\w+) (\w+)\[\] = \{\n(.*?)^\};\n", re.MULTILINE | re.DOTALL)
ENTRY = re.compile(r"\w+<[^<>]*>\([^()]*\)")
# Out of the unnamed namespace: there, what nobody calls is not compiled.
DECLARED = """\
{type} {name}[sizeof(count_of({entries}))];
}}  void fill_{name}() {{ const {type} filled[] = {{{entries}}}; keep(filled); }}  namespace {{
#line {line}
"""


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
    def declare(match):
        kind, name, entries = match.groups()
        line = text.count("\n", 0, match.end()) + 1
        entries = ENTRY.findall(entries)
        entries = ", ".join(entries if all_sizes else entries[:1])
        return DECLARED.format(type=kind, name=name, entries=entries, line=line)

    return TABLE.sub(declare, text)


def kernels(binary):
    """The names of the kernels of a cubin or an object: each has a section for its code."""
    return set(re.findall(rb"\.text\.(\w*kernel\w*)", binary.read_bytes()))


def check(run, source, folder, *flags, all_sizes=True):
    """run: a function of the arguments of hosts/nvrtc.c after the library. all_sizes: of a table
    of kernels, or the first only."""
    text = (ROOT / source).read_text(encoding="utf-8")
    copy, cubin = folder / source.rsplit("/", 1)[1], folder / "cubin"
    copy.write_text(for_device(text, all_sizes), encoding="utf-8")
    cubin.unlink() if cubin.exists() else None
    status, output = run(copy, cubin, *flags)
    assert status == 0, f"{source}: {output}"
    launches = re.search(r"<<<|_kernel<", text)
    assert bool(kernels(cubin)) == bool(launches), source
    return output

"""Compiles the core's CUDA kernels for the host, so that their values are tested without a GPU.

A copy of the sources is made in which what only nvcc reads is C++: launches, arrays in shared
memory, and inline assembly, of which emulated_assembly.py knows every line. tests/emulation has the
rest: a cuda_runtime.h, and what runs the threads. The library that comes out has the C functions of
lltm.h, and takes pointers to the host's memory.
"""

import ctypes
import mmap
import os
import platform
import re
from multiprocessing.pool import ThreadPool

import conftest
import core_abi
import pytest
import torch
from core_abi import Gpu
from emulated_assembly import ASSEMBLY
from repository import ROOT, run, tool

CORE = ROOT / "cuda_core"
EMULATION = ROOT / "tests" / "emulation"
# Of the kernels whose blocks exchange values those of two types, up to 256 units: see TABLE.
SOURCES = (
    "cell_fused.cu",
    "cell_kernels.cu",
    "gradient_products.cu",
    "parameter_gradients.cu",
    "sequence.cu",
    "sequence_block.cu",
    "sequence_block_bfloat16.cu",
    "sequence_block_float.cu",
    "sequence_block_half.cu",
    "sequence_grid_float.cu",
    "sequence_grid_half.cu",
    "sequence_product.cu",
    "split_product.cu",
    "step_fused.cu",
    "step_kernels.cu",
)
# Those with tensor cores have two kinds of kernels: EmulatedGpu.start says which the GPU has.
TENSOR_CORES = (
    "parameter_gradients",
    "sequence_block_bfloat16",
    "sequence_block_half",
    "sequence_grid_float",
    "sequence_grid_half",
    "sequence_product",
    "split_product",
)
FOR_HOPPER = ("-D__CUDA_ARCH_LIST__=900", "-DLLTM_TENSOR_CORES=1")
# Its assembly is behind an #if that no host compiler takes.
GUARDED = ("lltm_types.h",)
# An inline assembly statement as far as its template, and an operand of one as far as its
# expression; a launch; an array in shared memory.
STATEMENT = re.compile(r'\basm\s*(?:volatile)?\s*\(\s*"([^"]*)"')
OPERAND = re.compile(r'"[^"]*"\s*\(')
LAUNCH = re.compile(
    r"([\w:]+(?:<[\w, :]+>)?)\s*<<<([^,]+), ([^,]+), ([^,]+), stream>>>\(([^;]*)\);"
)
DYNAMIC = re.compile(r"extern __shared__ (?:__align__\(16\) )?(\w+) (\w+)\[\];")
SHARED = re.compile(r"__shared__ ([^;]*?(\w+)(?:\[[^;]*\])?);")
# A kernel that is launched by its address; of the tables of kernels the first ones.
ADDRESS = re.compile(r"reinterpret_cast<const void\*>\(&(\w+<Shape>)\)")
TABLE = re.compile(r"(return \{\{\n +// 256 units\n(?: +\w.*\n)+) +//[^}]*?\}\};")
INCLUDE = re.compile(r'#include "([^"]+)"')


def closing(text, start):
    """The place behind the parenthesis that closes the one at `start`."""
    depth = 0
    for place in range(start, len(text)):
        depth += {"(": 1, ")": -1}.get(text[place], 0)
        if depth == 0:
            return place + 1
    raise ValueError(f"no end of {text[start : start + 40]}")


def operands(text):
    """The expressions of `: "=f"(y) : "f"(x)`."""
    found, match = [], OPERAND.search(text)
    while match:
        end = closing(text, match.end() - 1)
        found.append(text[match.end() : end - 1])
        match = OPERAND.search(text, end)
    return found


def without_assembly(name, text, used):
    """The text with C++ in place of assembly; the templates that it met are added to `used`."""
    done, place = [], 0
    for match in STATEMENT.finditer(text):
        template = match.group(1)
        if template not in ASSEMBLY:
            line = text.count("\n", 0, match.start()) + 1
            raise LookupError(f"{name}:{line}: emulated_assembly.py knows no {template!r}")
        used.add(template)
        end = closing(text, text.index("(", match.start()))
        statement = ASSEMBLY[template].format(*operands(text[match.end() : end]))
        done += [text[place : match.start()], statement]
        place = end + (text[end] == ";")
    return "".join([*done, text[place:]])


def translated(name, text, used):
    if name in GUARDED:
        return text
    text = without_assembly(name, text, used)
    text = DYNAMIC.sub(r"\1* const \2 = static_cast<\1*>(emulated::dynamic_shared());", text)
    text = SHARED.sub(r"static \1; emulated::enter_shared(&\2, sizeof(\2));", text)
    text = LAUNCH.sub(r"emulated::launch(\2, \3, \4, [&] { \1(\5); });", text)
    text = ADDRESS.sub(r"emulated::entry<&\1>()", text)
    text = TABLE.sub(r"\1}};", text)
    for left in ("__shared__ ", "<<<"):
        if left in text:
            raise LookupError(f"{name}: emulated_gpu.py cannot read the line with {left}")
    return text


def copy_sources(folder):
    """Into an empty folder, of the core, SOURCES and what they include, as C++."""
    used, waiting, done = set(), list(SOURCES), set()
    while waiting:
        name = waiting.pop()
        done.add(name)
        text = (CORE / name).read_text(encoding="utf-8")
        waiting += set(INCLUDE.findall(text)) - done - set(waiting)
        target = folder / name.replace(".cu", ".cpp") if name.endswith(".cu") else folder / name
        target.write_text(translated(name, text, used), encoding="utf-8")
    unused = set(ASSEMBLY) - used
    if unused:
        raise LookupError(f"emulated_assembly.py has what no source has: {sorted(unused)}")


def build(folder):
    """The library's path."""
    copy_sources(folder)
    flags = ["-std=c++17", "-O1", "-fPIC", "-w"]
    # The sources read a value's bits by pointers of other types.
    flags += ["-fno-strict-aliasing"]
    # An index beyond an array in registers or in shared memory is an illegal instruction.
    flags += ["-fsanitize=bounds", "-fsanitize-undefined-trap-on-error"]
    # A longjmp from stack to stack is no error here, as some distributions' default takes it.
    flags += ["-U_FORTIFY_SOURCE"]
    # No assembly may be left, for the assembler would name no line.
    flags += ["-Dasm=untranslated_asm"]
    compiler = tool("g++")

    def compile(source):
        target = folder / (source.stem + ".o")
        folders = (f"-I{EMULATION}", f"-I{folder}")
        own = FOR_HOPPER if source.stem in TENSOR_CORES else ()
        status, output = run(compiler, *flags, *own, *folders, "-c", source, "-o", target)
        assert status == 0, output
        return target

    sources = sorted(folder.glob("*.cpp")) + sorted(EMULATION.glob("*.cpp"))
    with ThreadPool(os.cpu_count()) as pool:
        objects = pool.map(compile, sources, chunksize=1)
    library = folder / "libemulated.so"
    status, output = run(compiler, "-shared", "-Wl,-z,defs", *objects, "-o", library)
    assert status == 0, output
    return library


def built_once(folder):
    """The same, for several processes with a folder in common: one of them builds it."""
    import fcntl  # not on Windows

    with open(folder / "emulated.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        target, done = folder / "emulated", folder / "emulated.done"
        if not done.exists():
            target.mkdir(exist_ok=True)  # an earlier worker may have failed
            done.write_text(str(build(target)))
        return done.read_text()


class EmulatedGpu(Gpu):
    # Not "cpu", which means the functions of the CPU.
    memory = torch.device("cpu")

    def __init__(self, path):
        self.emulation = ctypes.CDLL(path)
        self.protect = ctypes.CDLL(None).mprotect
        self.protect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
        self.arrays = 0

    def put(self, tensor):
        """A copy beside a page that nobody may touch: behind it, of every other array before it.

        At most 15 bytes are between them, for arrays of a GPU are aligned. These are a NaN's.
        """
        size = tensor.numel() * tensor.element_size()
        if size == 0:
            return torch.empty_like(tensor)
        page, room = mmap.PAGESIZE, (size + 15) // 16 * 16
        inside = (room + page - 1) // page * page
        memory = mmap.mmap(-1, page + inside + page)
        memory[:] = b"\xff" * len(memory)
        start = ctypes.addressof(ctypes.c_char.from_buffer(memory))
        for guard in (start, start + page + inside):
            assert self.protect(guard, page, 0) == 0
        self.arrays += 1
        offset = page if self.arrays % 2 == 0 else page + inside - room
        copy = torch.frombuffer(memory, dtype=tensor.dtype, count=tensor.numel(), offset=offset)
        return copy.view(tensor.shape).copy_(tensor)

    def function(self, name):
        return getattr(self.emulation, name)

    def stream(self):
        return None

    def start(self, processors, hopper=True):
        """As if nothing had run on it yet, so that every test sees the same."""
        self.arrays = 0
        self.emulation.emulated_start(processors, 9 if hopper else 8)

    def take_the_place(self, monkeypatch):
        """Of a GPU, for the tests of one."""
        self.start(processors=1)
        monkeypatch.setattr(core_abi, "gpu", self)
        monkeypatch.setattr(conftest, "why_missing", lambda device: None)
        for copy in ("cuda", "clone"):
            monkeypatch.setattr(torch.Tensor, copy, lambda tensor: self.put(tensor))
        monkeypatch.setattr(torch.cuda, "synchronize", lambda: None)
        return self


def made_once(tmp_path_factory):
    """A fixture's: the emulated GPU, or the test is skipped."""
    if platform.libc_ver()[0] != "glibc":
        pytest.skip("the emulated GPU's threads need glibc's makecontext")
    if not tool("g++"):
        pytest.skip("no g++ on PATH")
    folder = tmp_path_factory.getbasetemp()
    # The workers of pytest -n have folders beside each other.
    return EmulatedGpu(built_once(folder.parent if folder.name.startswith("popen") else folder))

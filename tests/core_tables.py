"""The core's tables of host functions for each instruction set, as the extension has them."""

import ctypes
import platform

import pytest

from lltm_decoupled import _C

# cell_host.h, products_host.h: the tables' names, and what /proc/cpuinfo calls the instructions
# that they need
VARIANTS = {
    "baseline": (),
    "avx2": ("avx2", "fma"),
    "avx512": ("avx512f", "avx512dq", "avx512vl", "avx512bw"),
}


def host_function(kind, variant, place, arguments):
    """Entry `place` of a table ("cell" or "products"); it takes a pointer to a structure."""
    if platform.system() != "Linux" or platform.machine() != "x86_64":
        pytest.skip("the tables are looked up by their ELF names on x86-64")
    with open("/proc/cpuinfo", encoding="ascii") as file:
        flags = file.read().split("flags", 1)[1].split("\n", 1)[0].split()
    missing = [flag for flag in VARIANTS[variant] if flag not in flags]
    if missing:
        pytest.skip(f"this CPU lacks {missing}")
    name = f"host_{kind}_{variant}"
    symbol = f"_ZN4lltm{len(name)}{name}E"
    table = (ctypes.c_void_p * (place + 1)).in_dll(ctypes.CDLL(_C.__file__), symbol)
    return ctypes.CFUNCTYPE(None, ctypes.POINTER(arguments))(table[place])


def structure(doc, sizes, pointers):
    """A ctypes structure of int64_t sizes and pointers; both are names in one string."""
    fields = [(name, ctypes.c_int64) for name in sizes.split()]
    fields += [(name, ctypes.c_void_p) for name in pointers.split()]
    return type(doc, (ctypes.Structure,), {"_fields_": fields})


_SIZES = "batch_size state_size"
# lltm_cell.h and lltm_step.h: the arguments of the two passes
CELL = (
    structure(
        "CellForward",
        _SIZES,
        "gates bias old_cell new_h new_cell input_gate output_gate candidate_cell",
    ),
    structure("CellBackward", _SIZES, "grad_h grad_cell gates bias new_cell d_gates d_old_cell"),
)
STEP = (
    structure("StepForward", _SIZES, "gates keep_h keep_cell old_h cell new_h state_h new_cell"),
    structure(
        "StepBackward",
        _SIZES,
        "grad_output activations new_cell keep_h keep_cell d_h d_cell d_gates",
    ),
)

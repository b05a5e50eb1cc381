"""The host's own exponential functions, in units in the last place, for every instruction set.

They are reached through the cell: its saved gates are sigmoid and ELU of what comes in, with a
candidate of 0 and an output gate of 1 its new_h is tanh(old_cell), and with an input gate of 1 the
gradient of a candidate below 0 is its exponential.
"""

import ctypes
import functools

import numpy as np
import pytest
from core_tables import VARIANTS, host_function, structure

TYPES = {"float32": (0, np.float32), "float64": (1, np.float64)}  # place in the table
MOST_ULP = 2.0  # over all of float32, too, which is four billion values

SIZES = "batch_size state_size"  # lltm_cell.h
CellForward = structure(
    "CellForward",
    SIZES,
    "gates bias old_cell new_h new_cell input_gate output_gate candidate_cell",
)
CellBackward = structure(
    "CellBackward", SIZES, "grad_h grad_cell gates bias new_cell d_gates d_old_cell"
)


def run(variant, type_name, x):
    """sigmoid, elu, tanh and, of x and of -x, exp(-|x|)."""
    place, dtype = TYPES[type_name]
    n = len(x)
    zeros, ones, hundreds = (np.full(n, value, dtype) for value in (0, 1, 100))

    def call(loop, arguments, **arrays):
        pointers = {name: array.ctypes.data for name, array in arrays.items()}
        loop(ctypes.byref(arguments(1, n, **pointers)))

    forward = host_function("cell", variant, place, CellForward)
    backward = host_function("cell", variant, 4 + place, CellBackward)
    new_h, new_cell, sigmoid, elu, unused = (np.empty(n, dtype) for _ in range(5))
    gates = np.concatenate([x, hundreds, zeros])
    outputs = {"new_h": new_h, "new_cell": new_cell, "input_gate": sigmoid}
    call(forward, CellForward, gates=gates, old_cell=x, **outputs)
    assert np.array_equal(new_cell, x)
    outputs = {"new_h": unused, "new_cell": new_cell, "candidate_cell": elu}
    call(forward, CellForward, gates=np.concatenate([x, x, x]), old_cell=x, **outputs)
    d_gates = np.empty(3 * n, dtype)
    outputs = {"d_gates": d_gates, "d_old_cell": unused}
    gates = np.concatenate([hundreds, zeros, -abs(x)])
    call(backward, CellBackward, grad_cell=ones, gates=gates, new_cell=zeros, **outputs)
    exp = d_gates[2 * n :]
    exp[x == 0] = 1  # ELU's slope is exp(x) below 0 only, and 1 above
    return {"sigmoid": sigmoid, "elu": elu, "tanh": new_h, "exp": exp}


@functools.lru_cache(maxsize=None)
def expected(type_name):
    """Points, and the functions there in a wider type."""
    dtype = TYPES[type_name][1]
    bits = np.uint32 if dtype == np.float32 else np.uint64
    # Every so manyth of all values, and densely where the functions change.
    count = 500009
    every = (np.arange(count, dtype=bits) * bits(np.iinfo(bits).max // count)).view(dtype)
    limit = 110 if dtype == np.float32 else 750
    x = np.concatenate([np.linspace(-n, n, 200001) for n in (limit, 20, 3)])
    x = np.concatenate([every[np.isfinite(every)], x.astype(dtype)])
    wide = x.astype(np.float64 if dtype == np.float32 else np.longdouble)
    with np.errstate(over="ignore", under="ignore"):
        return x, {
            "sigmoid": 1 / (1 + np.exp(-wide)),
            "elu": np.where(wide > 0, wide, np.expm1(np.minimum(wide, 0))),
            "tanh": np.tanh(wide),
            "exp": np.exp(-abs(wide)),
        }


@pytest.mark.parametrize("type_name", TYPES)
@pytest.mark.parametrize("variant", VARIANTS)
def test_two_units_in_the_last_place(variant, type_name):
    if type_name == "float64" and np.finfo(np.longdouble).eps >= np.finfo(np.float64).eps:
        pytest.skip("no wider type to compare float64 with")
    x, functions = expected(type_name)
    for name, result in run(variant, type_name, x).items():
        value = functions[name]
        unit = np.spacing(np.abs(value).astype(x.dtype)).astype(value.dtype)
        error = np.abs(result.astype(value.dtype) - value) / unit
        worst = int(error.argmax())  # NaN, if there is one
        assert error[worst] <= MOST_ULP, (name, x[worst], float(error[worst]))


@pytest.mark.parametrize("type_name", TYPES)
@pytest.mark.parametrize("variant", VARIANTS)
def test_limits(variant, type_name):
    x = np.array([np.inf, -np.inf], TYPES[type_name][1])
    results = {name: result.tolist() for name, result in run(variant, type_name, x).items()}
    assert results == {"sigmoid": [1, 0], "elu": [np.inf, -1], "tanh": [1, -1], "exp": [0, 0]}

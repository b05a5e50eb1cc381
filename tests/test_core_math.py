"""The host's own exponential functions, in units in the last place, for every instruction set.

They are reached through the cell: its saved gates are sigmoid and ELU of what comes in, and with a
candidate of 0 and an output gate of 1 its new_h is tanh(old_cell).
"""

import ctypes

import numpy as np
import pytest
from core_tables import VARIANTS, host_function, structure

TYPES = {"float32": (0, np.float32), "float64": (1, np.float64)}  # place in the table
# sigmoid is 1 / (1 + exp(-x)) and tanh m / (2 - m) of m = expm1: two roundings, which may count
# double, beside those of exp and expm1.
MOST_ULP = {"sigmoid": 2.5, "elu": 2.0, "tanh": 2.5}


CellForward = structure(
    "CellForward",  # lltm_cell.h
    "batch_size state_size",
    "gates bias old_cell new_h new_cell input_gate output_gate candidate_cell",
)


def run(loop, dtype, x):
    """sigmoid, elu and tanh of x."""
    n = len(x)
    gates = np.concatenate([x, np.full(n, 100, dtype), np.zeros(n, dtype)])
    outputs = {name: np.empty(n, dtype) for name in ("new_h", "new_cell", "input_gate")}
    elu_gates, elu = np.concatenate([x, x, x]), np.empty(n, dtype)

    def call(gates, **arrays):
        pointers = {name: array.ctypes.data for name, array in arrays.items()}
        loop(ctypes.byref(CellForward(1, n, gates=gates.ctypes.data, **pointers)))

    call(gates, old_cell=x, **outputs)
    assert np.array_equal(outputs["new_cell"], x)
    spare = {name: np.empty(n, dtype) for name in ("new_h", "new_cell")}
    call(elu_gates, old_cell=x, candidate_cell=elu, **spare)
    return {"sigmoid": outputs["input_gate"], "elu": elu, "tanh": outputs["new_h"]}


def points(dtype):
    """Densely over where the functions change, and by powers of two towards 0."""
    limit = 87 if dtype == np.float32 else 700  # beyond, results leave the normal numbers
    small = 2.0 ** np.linspace(-100, 0, 20001)
    x = np.concatenate(
        [np.linspace(-limit, limit, 200001), np.linspace(-3, 3, 200001), small, -small]
    )
    return x[x != 0].astype(dtype)


@pytest.mark.parametrize("type_name", TYPES)
@pytest.mark.parametrize("variant", VARIANTS)
def test_a_few_units_in_the_last_place(variant, type_name):
    place, dtype = TYPES[type_name]
    if np.finfo(np.longdouble).eps >= np.finfo(np.float64).eps:
        pytest.skip("no wider type to compare float64 with")
    x = points(dtype)
    results = run(host_function("cell", variant, place, CellForward), dtype, x)
    wide = x.astype(np.longdouble)
    expected = {
        "sigmoid": 1 / (1 + np.exp(-wide)),
        "elu": np.where(wide > 0, wide, np.expm1(np.minimum(wide, 0))),
        "tanh": np.tanh(wide),
    }
    for name, result in results.items():
        unit = np.spacing(np.abs(expected[name]).astype(dtype)).astype(np.longdouble)
        error = np.abs(result.astype(np.longdouble) - expected[name]) / unit
        worst = int(error.argmax())
        assert error[worst] <= MOST_ULP[name], (name, x[worst], float(error[worst]))

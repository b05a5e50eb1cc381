"""Calls the core's host library through its C ABI and compares it with the formula in plain Python.

core_by_ctypes.py LIBRARY float|double TOLERANCE     run by test_core_alone.py
"""

import ctypes
import math
import random
import sys

BATCH, STATE, FEATURES = 5, 37, 3  # not a multiple of any vector width
GATES = 3 * STATE


def sigmoid(x):
    return 1 / (1 + math.exp(-x)) if x >= 0 else math.exp(x) / (1 + math.exp(x))


def elu(x):
    return x if x > 0 else math.expm1(x)


def forward(a_input, a_output, a_cell, old_cell):
    new_cell = old_cell + elu(a_cell) * sigmoid(a_input)
    return {
        "new_h": math.tanh(new_cell) * sigmoid(a_output),
        "new_cell": new_cell,
        "input_gate": sigmoid(a_input),
        "output_gate": sigmoid(a_output),
        "candidate_cell": elu(a_cell),
    }


def backward(a_input, a_output, a_cell, new_cell, grad_h, grad_cell):
    i, o, t = sigmoid(a_input), sigmoid(a_output), math.tanh(new_cell)
    d_cell = grad_h * o * (1 - t * t) + grad_cell
    slope = 1.0 if a_cell > 0 else math.exp(a_cell)
    d_gates = (d_cell * elu(a_cell) * i * (1 - i), grad_h * t * o * (1 - o), d_cell * i * slope)
    return d_gates, d_cell


def check_products(library, name, array, check):
    """gates, and all gradients of the weights' products, against sums in plain Python."""
    width = STATE + FEATURES
    input, old_h, weights = array(BATCH * FEATURES), array(BATCH * STATE), array(GATES * width)
    gates, d_gates, d_bias = array(BATCH * GATES), array(BATCH * GATES), array(GATES)
    d_input, d_old_h, d_weights = array(len(input)), array(len(old_h)), array(len(weights))

    def call(operation, *pointers):
        function = getattr(library, f"lltm_{operation}_products_cpu_{name}")
        function.restype = ctypes.c_int32
        function.argtypes = [ctypes.c_int64] * 3 + [ctypes.c_void_p] * len(pointers)
        return function(BATCH, STATE, FEATURES, *pointers)

    outputs = (d_input, d_weights, d_bias, d_old_h, None)  # no stream
    assert call("gate", input, weights, old_h, gates) == 0
    assert call("gradient", d_gates, input, weights, old_h, *outputs) == 0
    rows, units = range(BATCH), range(GATES)

    def x(b, k):
        return old_h[b * STATE + k] if k < STATE else input[b * FEATURES + k - STATE]

    for n in units:
        check("d_bias", d_bias[n], sum(d_gates[b * GATES + n] for b in rows))
        for b in rows:
            expected = sum(x(b, k) * weights[n * width + k] for k in range(width))
            check("gates", gates[b * GATES + n], expected)
        for k in range(width):
            expected = sum(x(b, k) * d_gates[b * GATES + n] for b in rows)
            check("d_weights", d_weights[n * width + k], expected)
    for b in rows:
        for k in range(width):
            expected = sum(d_gates[b * GATES + n] * weights[n * width + k] for n in units)
            got = d_old_h[b * STATE + k] if k < STATE else d_input[b * FEATURES + k - STATE]
            check("d_x", got, expected)

    # What is null is not computed, and what it alone needs may be null too.
    assert call("gradient", d_gates, None, None, None, None, None, d_bias, None, None) == 0
    assert call("gradient", d_gates, None, weights, None, d_input, None, None, None, None) == 0
    assert call("gradient", d_gates, None, weights, old_h, None, d_weights, None, None, None) == -5
    assert call("gradient", d_gates, input, None, old_h, *outputs) == -6
    assert call("gradient", d_gates, input, weights, None, *outputs) == -7
    assert call("gate", input, weights, old_h, None) == -7
    assert library.lltm_vector_bytes() in (16, 32, 64)
    assert library.lltm_processor() in (0, 1, 2)


def check_matrices(library, name, array, check):
    """c = a b^T of a dense a and b, against sums in plain Python."""
    rows, inner, columns = 3, 5, 37
    a, b, c = array(rows * inner), array(columns * inner), array(rows * columns)
    panel = getattr(library, f"lltm_panel_columns_cpu_{name}")()
    packed = array((columns + panel) * inner)
    pack = getattr(library, f"lltm_pack_matrix_cpu_{name}")
    multiply = getattr(library, f"lltm_multiply_packed_cpu_{name}")
    size, place = ctypes.c_int64, ctypes.c_void_p
    pack.argtypes = [size, size, place, size, size, place]
    multiply.argtypes = [size] * 3 + [place, size, size, place, place, size, ctypes.c_int32]

    assert pack(inner, columns, b, 1, inner, packed) == 0
    for adds in (0, 1):
        assert multiply(rows, inner, columns, a, inner, 1, packed, c, columns, adds) == 0
        for i in range(rows):
            for j in range(columns):
                terms = (a[i * inner + k] * b[j * inner + k] for k in range(inner))
                check("c", c[i * columns + j], (1 + adds) * sum(terms))

    good = [rows, inner, columns, a, inner, 1, packed, c, columns, 0]
    for number, bad in ((1, -1), (2, -1), (3, -1), (4, None), (7, None), (8, None), (9, 36)):
        assert multiply(*(bad if i == number - 1 else x for i, x in enumerate(good))) == -number
    good = [inner, columns, b, 1, inner, packed]
    for number, bad in ((1, -1), (2, -1), (2, 2**62), (3, None), (6, None)):
        assert pack(*(bad if i == number - 1 else x for i, x in enumerate(good))) == -number
    # Of nothing the sum is zero, and nothing may be null.
    assert multiply(rows, 0, columns, None, inner, 1, None, c, columns, 0) == 0
    assert set(c) == {0.0}
    assert multiply(0, inner, columns, None, inner, 1, None, None, columns, 0) == 0
    assert pack(0, columns, None, 1, inner, None) == pack(inner, 0, None, 1, inner, None) == 0


def main(path, name, tolerance):
    real = {"float": ctypes.c_float, "double": ctypes.c_double}[name]
    library = ctypes.CDLL(path)
    pick = random.Random(0)

    def array(size, scale=3.0):
        return (real * size)(*(pick.uniform(-scale, scale) for _ in range(size)))

    def call(operation, *pointers):
        function = getattr(library, f"lltm_cell_{operation}_cpu_{name}")
        function.restype = ctypes.c_int32
        function.argtypes = [ctypes.c_int64] * 2 + [ctypes.c_void_p] * (len(pointers) + 1)
        return function(BATCH, STATE, *pointers, None)

    def check(what, got, expected):
        scale = max(1.0, abs(expected))
        assert abs(got - expected) <= tolerance * scale, f"{what}: {got}, expected {expected}"

    gates, bias, old_cell = array(BATCH * GATES), array(GATES, 0.5), array(BATCH * STATE)
    grad_h, grad_cell = array(BATCH * STATE), array(BATCH * STATE)
    outputs = {key: array(BATCH * STATE) for key in forward(0, 0, 0, 0)}
    d_gates, d_old_cell = array(BATCH * GATES), array(BATCH * STATE)
    new_cell = outputs["new_cell"]

    for used in (bias, None):
        assert call("forward", gates, used, old_cell, *outputs.values()) == 0
        assert call("backward", grad_h, grad_cell, gates, used, new_cell, d_gates, d_old_cell) == 0
        for row in range(BATCH):
            for unit in range(STATE):
                at = row * STATE + unit
                columns = [gate * STATE + unit for gate in range(3)]
                a = [gates[row * GATES + c] + (used[c] if used else 0) for c in columns]
                for key, expected in forward(*a, old_cell[at]).items():
                    check(key, outputs[key][at], expected)
                wanted, d_cell = backward(*a, new_cell[at], grad_h[at], grad_cell[at])
                check("d_old_cell", d_old_cell[at], d_cell)
                for column, expected in zip(columns, wanted):
                    check("d_gates", d_gates[row * GATES + column], expected)

    # Saved gates are optional, a missing gradient is zero, a bad argument is named by its number.
    nothing = (None, None, None)
    before = list(outputs["new_h"])
    assert call("forward", gates, None, old_cell, outputs["new_h"], new_cell, *nothing) == 0
    assert list(outputs["new_h"]) == before
    assert call("backward", None, None, gates, None, new_cell, d_gates, d_old_cell) == 0
    assert set(d_gates) == set(d_old_cell) == {0.0}
    assert call("forward", None, None, old_cell, outputs["new_h"], new_cell, *nothing) == -3
    # 37 * 3 products of up to 9: errors are those of a sum, in units of its largest terms
    check_products(library, name, array, lambda what, got, sum: check(what, got / 100, sum / 100))
    check_matrices(library, name, array, check)
    assert "torch" not in sys.modules
    print("agrees")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], float(sys.argv[3]))

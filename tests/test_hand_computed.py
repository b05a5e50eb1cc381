"""Every device held to the same numbers, computed outside PyTorch (mpmath, 40 digits).

The literals also hold the reference itself: an error shared by it and the kernels shows here.
"""

import pytest
import torch
from helpers import CALLS, assert_close, evaluate

import lltm_decoupled
from lltm_decoupled import reference

ALL_CALLS = dict(CALLS, reference=reference.lltm_cell)

# One row: pre-activations of the three gates, old_cell, grad_h, grad_cell
#          -> the activated gates, new_cell, new_h,
#          -> gradients of the three pre-activations and of old_cell.
# fmt: off
GATE_TABLE = [
    # all zero: sigmoid 1/2, ELU 0 with slope 1
    ((0, 0, 0, 0, 1, 1),
     (0.5, 0.5, 0, 0, 0),
     (0, 0, 0.75, 1.5)),
    # candidate > 0, only new_h used
    ((1, 2, 3, 0.5, 1, 0),
     (0.73105857863000488, 0.88079707797788244, 3, 2.6931757358900146, 0.87276811979750192),
     (0.0094283647729246658, 0.10403651012761177, 0.011685772469083059, 0.015984727914665961)),
    # candidate < 0, only new_cell used
    ((-1, 0.5, -2, 0.25, 0, 1),
     (0.26894142136999512, 0.62245933120185456, -0.86466471676338731, 0.01745584206517037,
      0.010864448310808509),
     (-0.17000340156854792, 0, 0.036397263435165491, 1)),
    ((0.5, -1.5, -0.25, -0.75, 2, -1),
     (0.62245933120185456, 0.18242552380635634, -0.22119921692859513, -0.88768751663174727,
      -0.12956766852187654),
     (0.042584162841371014, -0.21186243744680973, -0.39712494476120444, -0.81919974063131627)),
    ((-3, 4, 1.5, -2, -1.5, 0.5),
     (0.047425873177566781, 0.98201379003790844, 1.5, -1.9288611902336498, -0.94139893180300376),
     (0.025796443829347092, 0.025398298268246306, 0.018053848761284372, 0.38067509466170757)),
    ((2, -0.5, -8, 3, 0.5, 0.25),
     (0.88079707797788244, 0.37754066879814544, -0.99966453737209749, 2.1194983965245449,
      0.36680566657944185),
     (-0.027350300553053442, 0.11416080495004492, 7.6995449821744894e-5, 0.26058238253801803)),
    # saturated gates
    ((40, -40, -40, 1, 1, 1),
     (1, 4.248354255291589e-18, -1, 8.496708510583178e-18, 0),
     (-4.248354255291589e-18, 0, 4.248354255291589e-18, 1)),
    ((-40, 40, 40, 0, 1, 1),
     (4.248354255291589e-18, 1, 40, 1.6993417021166356e-16, 1.6993417021166356e-16),
     (3.3986834042332712e-16, 0, 8.4967085105831779e-18, 2)),
]

# A whole cell with B = 2, I = 1, H = 2; no two numbers alike that a swap could exchange. All inputs
# are multiples of 1/16, exact in every dtype.
CELL_INPUTS = (
    [[0.5], [-1.5]],
    [[0.5, -0.25, 1], [-1, 0.75, 0.25],           # input gate:  h0 h1 | x
     [0.25, 0.5, -0.5], [1.5, -0.5, 0.75],        # output gate
     [-0.75, 1, 0.5], [0.125, -1.25, -1]],        # candidate cell
    [0.125, -0.25, 0.5, -0.375, 0.75, -0.0625],
    [[0.25, -0.5], [1, 0.75]],
    [[-0.25, 0.5], [1.25, -1]],
)
CELL_GRADS = ([[1, -2], [0.5, 1.5]], [[0.25, 0.75], [-1, 0.5]])
CELL_RESULTS = {
    "new_h": [[-0.015176588771128023, 0.31619366985885982],
              [0.73549225029831324, -0.27924070792411602]],
    "new_cell": [[-0.029442178800933992, 0.53007699695230691], [1.25, -0.83948000538280072]],
    "d_input": [[0.23557210398619746], [-0.51046001333282846]],
    "d_weights": [[0.01241329278743011, -0.024826585574860219, 0.024826585574860219],
                  [0.097025726438357635, 0.076220241082684583, -0.14993070307161182],
                  [0.047059274779154407, 0.040348431761113142, -0.077021244848228221],
                  [-0.30336465381106953, -0.075944336231243321, 0.26212805728216579],
                  [-0.090598297402584126, -0.43923158376532839, 0.60843926883000929],
                  [0.1918844352841272, 0.19811127675187774, -0.35680586238464105]],
    "d_bias": [0.049653171149720438, 0.093261057797721609, 0.041545846768157312,
               -0.46872373104058825, 0.3144375506483871, 0.13275939860545555],
    "d_old_h": [[-0.71759984086441139, 0.728975329916696],
                [-0.26276700438790143, -0.26781973805989446]],
    "d_old_cell": [[0.76517321294892872, -0.24572365374619271],
                   [-0.87843514172071228, 0.82385679330899391]],
}
# fmt: on


def tensors(target, *values):
    return [torch.tensor(v, dtype=target.dtype, device=target.device) for v in values]


def check_results(results, expected, target):
    assert results.keys() == expected.keys()
    for name, tensor in results.items():
        assert_close(tensor, expected[name], target, name)


@pytest.mark.parametrize("call", ALL_CALLS)
def test_a_whole_cell(call, target):
    inputs, grads = tensors(target, *CELL_INPUTS), tensors(target, *CELL_GRADS)
    check_results(evaluate(ALL_CALLS[call], inputs, grads), CELL_RESULTS, target)


@pytest.mark.parametrize("call", ALL_CALLS)
def test_a_whole_cell_with_the_tutorials_bias_row(call, target):
    inputs, grads = tensors(target, *CELL_INPUTS), tensors(target, *CELL_GRADS)
    inputs[2] = inputs[2].reshape(1, 6)
    expected = dict(CELL_RESULTS, d_bias=[CELL_RESULTS["d_bias"]])
    check_results(evaluate(ALL_CALLS[call], inputs, grads), expected, target)


def gate_table_inputs(target):
    """H = 1 and weights that hand the three input features to the three gates unchanged."""
    given, _, _ = (list(zip(*part)) for part in zip(*GATE_TABLE))
    columns = [torch.tensor(c, dtype=target.dtype, device=target.device) for c in given]
    weights = torch.eye(4)[1:].to(target.device, target.dtype)  # torch 2.0: no eye in bfloat16
    old_h = torch.full((len(GATE_TABLE), 1), 7.0, dtype=target.dtype, device=target.device)
    inputs = [torch.stack(columns[:3], dim=1), weights, None, old_h, columns[3][:, None]]
    return inputs, [columns[4][:, None], columns[5][:, None]]


@pytest.mark.parametrize("call", ALL_CALLS)
def test_gate_table(call, target):
    inputs, grads = gate_table_inputs(target)
    results = evaluate(ALL_CALLS[call], inputs, grads)
    for row, (_, values, d_values) in enumerate(GATE_TABLE):
        what = f"row {row}: "
        assert_close(results["new_cell"][row], values[3:4], target, what + "new_cell")
        assert_close(results["new_h"][row], values[4:5], target, what + "new_h")
        assert_close(results["d_input"][row], d_values[:3], target, what + "d_gates")
        assert_close(results["d_old_cell"][row], d_values[3:], target, what + "d_old_cell")


def test_gate_table_through_the_raw_functions(target):
    inputs, grads = gate_table_inputs(target)
    outputs = lltm_decoupled.forward(*inputs)
    new_h, new_cell, input_gate, output_gate, candidate_cell = outputs[:5]
    actual = torch.cat([input_gate, output_gate, candidate_cell, new_cell, new_h], dim=1)
    assert_close(actual, [values for _, values, _ in GATE_TABLE], target)
    _, d_input, _, d_bias, d_old_cell = lltm_decoupled.backward(*grads, *outputs[1:], inputs[1])
    expected = [d_values for _, _, d_values in GATE_TABLE]
    assert_close(torch.cat([d_input, d_old_cell], dim=1), expected, target)
    assert_close(d_bias, [[sum(column) for column in list(zip(*expected))[:3]]], target)


# exp(x) - 1 loses every digit of a small x; expm1 keeps them (relative error, no atol at all).
@pytest.mark.parametrize("x", [-1e-3, -1e-5, -1e-10, -1e-30, 1e-10])
def test_small_candidates_keep_their_digits(x, target):
    inputs = tensors(target, [[x]], [[0, 0], [0, 0], [0, 1]], [0, 0, 0], [[0]], [[0]])
    candidate_cell = lltm_decoupled.forward(*inputs)[4]
    expected = torch.expm1(inputs[0].double()) if x < 0 else inputs[0].double()
    torch.testing.assert_close(candidate_cell.double(), expected, rtol=target.rtol, atol=0.0)


GATES = ("input_gate", "output_gate", "candidate_cell")


@pytest.mark.parametrize("gate", range(3), ids=GATES)
def test_gate_order(gate, target):
    """Row block `gate` of the weights moves that gate and no other."""
    inputs = tensors(target, [[0.5]], [[0, 0], [0, 0], [0, 0]], [0, 0, 0], [[0.25]], [[0.75]])
    resting = lltm_decoupled.forward(*inputs)[2:5]
    inputs[1][gate] = 1
    moved = lltm_decoupled.forward(*inputs)[2:5]
    assert [bool((a != b).any()) for a, b in zip(resting, moved)] == [g == gate for g in range(3)]


@pytest.mark.parametrize("column, reacts_to", [(0, "old_h"), (1, "old_h"), (2, "input")])
def test_columns_of_old_h_come_first(column, reacts_to, target):
    weights = torch.zeros(6, 3, dtype=target.dtype, device=target.device)
    weights[:, column] = 1
    old_h, old_cell, input = tensors(target, [[0.25, 0.5]], [[0.75, 1]], [[0.125]])
    resting = lltm_decoupled.lltm_cell(input, weights, None, old_h, old_cell)[0]
    by_input = lltm_decoupled.lltm_cell(input + 1, weights, None, old_h, old_cell)[0]
    by_old_h = lltm_decoupled.lltm_cell(input, weights, None, old_h + 1, old_cell)[0]
    assert torch.equal(resting, by_input) == (reacts_to == "old_h")
    assert torch.equal(resting, by_old_h) == (reacts_to == "input")

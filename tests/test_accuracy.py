"""The cell's rounding errors, beside those of the plain module in the same dtype.

Both are held against float64 by the norm of the difference, over several draws.
"""

import pytest
import torch
from helpers import draw, draw_grads, evaluate, exact

from lltm_decoupled import lltm_cell, reference

SIZES = ((16, 32, 128), (64, 512, 512))
# float32: PyTorch's own exp and tanh are within 1 ulp, ours within 2. Half types compute in float32
# and round once, where the plain module rounds after every operation. float64 is the measure.
MOST = {torch.float32: 1.5, torch.float16: 1.0, torch.bfloat16: 1.0}
DRAWS = 4


def squared_errors(function, inputs, grads, expected):
    results = evaluate(function, inputs, grads)
    return {name: (results[name].double().cpu() - expected[name]).norm() ** 2 for name in expected}


@pytest.mark.parametrize("sizes", SIZES, ids=str)
def test_errors_beside_the_plain_module(sizes, target):
    if target.dtype not in MOST:
        pytest.skip("float64 is the measure")
    ours, theirs = {}, {}
    for seed in range(DRAWS):
        torch.manual_seed(seed)
        inputs = draw(target, *sizes)
        grads = draw_grads(inputs)
        expected = evaluate(reference.lltm_cell, exact(inputs), exact(grads))
        for total, function in ((ours, lltm_cell), (theirs, reference.lltm_cell)):
            for name, error in squared_errors(function, inputs, grads, expected).items():
                total[name] = total.get(name, 0) + error
    ratios = {name: float((ours[name] / theirs[name]) ** 0.5) for name in ours}
    too_large = {n: r for n, r in ratios.items() if not r <= MOST[target.dtype]}
    assert not too_large, f"error / error of the plain module: {ratios}"

"""What a backward pass computes and allocates: only what somebody asked for."""

import itertools

import pytest
import torch
from helpers import INPUTS, OUTPUTS, assert_close, draw, draw_grads, each, exact

from lltm_decoupled import LLTM, lltm_cell, reference

# More rows than the core multiplies by itself, so that every product is ATen's and can be counted.
# Of the core's products tests/test_core_products.py and test_core_cuda.py try every subset. On a
# processor where those of more rows are the core's too, tests/test_cpu_products.py runs this file
# with ATen's.
BATCH, FEATURES, STATE = 260, 3, 4


def profiled(run):
    """The (name, input shapes) of every operation that PyTorch performs in run()."""
    with torch.autograd.profiler.profile(record_shapes=True) as profile:
        run()
    return [(event.name, event.input_shapes) for event in profile.function_events]


def multiplications(events):
    """Of all matrix products together: m * k * n for (m, k) times (k, n)."""
    total = 0
    for name, shapes in events:
        if name in ("aten::mm", "aten::addmm", "aten::addmm_"):
            (m, k), (_, n) = shapes[:2] if name == "aten::mm" else shapes[1:3]
            total += m * k * n
    return total


@pytest.fixture
def counted(target):
    """A target whose products are ATen's."""
    inputs = draw(target, BATCH, FEATURES, STATE)
    if target.device == "cpu" and not multiplications(profiled(lambda: lltm_cell(*inputs))):
        pytest.skip("on this processor products are the core's own")
    return target


ONE = BATCH * 3 * STATE  # multiplications for each column of the weights
COST = {"i": ONE * FEATURES, "w": ONE * (STATE + FEATURES), "b": 0, "h": ONE * STATE, "c": 0}
SUBSETS = ["".join(s) for n in range(1, 6) for s in itertools.combinations("iwbhc", n)]


@pytest.mark.parametrize("bias", ["vector", None])
def test_no_product_that_nobody_asked_for(bias, counted):
    """What requires no gradient costs no matrix product, in any of the 31 subsets."""
    values, grads = (
        draw(counted, BATCH, FEATURES, STATE, bias=bias),
        draw_grads(draw(counted, BATCH, FEATURES, STATE)),
    )
    for subset in SUBSETS:
        if subset == "b" and bias is None:
            continue
        inputs = [
            None if t is None else t.clone().requires_grad_(letter in subset)
            for t, letter in zip(values, "iwbhc")
        ]
        outputs = lltm_cell(*inputs)
        events = profiled(lambda: torch.autograd.backward(outputs, grads))  # noqa: B023
        assert multiplications(events) == sum(COST[letter] for letter in subset), subset


@pytest.mark.skipif(
    torch.__version__.startswith("1."), reason="torch 1 does not tell which inputs are wanted"
)
def test_no_product_outside_the_inputs_asked_for(counted):
    """All five require a gradient, and the caller wants one: autograd.grad(..., inputs=one)."""
    inputs = [t.requires_grad_() for t in draw(counted, BATCH, FEATURES, STATE)]
    outputs, grads = lltm_cell(*inputs), draw_grads(inputs)
    for letter, tensor in zip("iwbhc", inputs):
        events = profiled(
            lambda: torch.autograd.grad(outputs, tensor, grads, retain_graph=True)  # noqa: B023
        )
        assert multiplications(events) == COST[letter], letter


def test_forward_multiplies_once(counted):
    inputs = draw(counted, BATCH, FEATURES, STATE)
    for tensors in (inputs, each(lambda t: t.clone().requires_grad_(), inputs)):
        events = profiled(lambda: lltm_cell(*tensors))  # noqa: B023
        assert multiplications(events) == COST["w"]


def test_a_small_cell_is_three_launches_on_a_gpu(target):
    """Forward has the products inside; backward has them all beside the pointwise part."""
    if target.device == "cpu":
        pytest.skip("nothing is launched")

    def launches(run):
        events = profiled(run)
        assert multiplications(events) == 0
        # "ExC" has attributes: that it may start early
        return [name.replace("KernelExC", "Kernel") for name, _ in events if "Launch" in name]

    inputs = [t.requires_grad_() for t in draw(target, 16, FEATURES, STATE)]
    grads, outputs = draw_grads(inputs), lltm_cell(*inputs)
    assert launches(lambda: lltm_cell(*inputs)) == ["cudaLaunchKernel"]
    backward = launches(lambda: torch.autograd.grad(outputs, inputs, grads))
    assert backward == ["cudaLaunchKernel"] * 2


@pytest.mark.parametrize("used", OUTPUTS)
def test_an_unused_output_costs_no_zeros(used, counted):
    """Its gradient is undefined, and stays so: no tensor of zeros is made or filled for it."""
    inputs = [t.requires_grad_() for t in draw(counted, BATCH, FEATURES, STATE)]
    output, grad = lltm_cell(*inputs)[OUTPUTS.index(used)], draw_grads(inputs)[0]
    events = profiled(lambda: torch.autograd.grad(output, inputs, grad))
    assert multiplications(events)
    # a sum starts with filling its result, which has another shape
    filled = [
        shapes for name, shapes in events if "fill" in name and list(shapes[0]) == [BATCH, STATE]
    ]
    assert not filled + [name for name, _ in events if "zero" in name]


def test_packed_inputs_are_not_copied(target):
    """Where every tensor is packed, forward's one copy is [old_h, input] side by side."""
    inputs = draw(target, BATCH, FEATURES, STATE)
    names = [name for name, _ in profiled(lambda: lltm_cell(*inputs))]
    assert not {"aten::copy_", "aten::clone", "aten::contiguous"} & set(names)
    assert names.count("aten::cat") <= 1


def test_a_training_step_with_a_gradient_penalty(target):
    """As WGAN-GP trains: the norm of d score / d input is part of the loss, on every device."""
    module = LLTM(FEATURES, STATE, device=target.device, dtype=target.dtype)
    twin = reference.LLTM(FEATURES, STATE, dtype=torch.float64)
    twin.load_state_dict(dict(zip(module.state_dict(), exact(module.state_dict().values()))))
    inputs = draw(target, BATCH, FEATURES, STATE)
    for model, (input, _, _, *state) in ((module, inputs), (twin, exact(inputs))):
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for _ in range(2):
            input = input.detach().requires_grad_()
            score = torch.stack(model(input, state)).sum(dim=(0, 2))
            (slope,) = torch.autograd.grad(score.sum(), input, create_graph=True)
            penalty = ((slope.norm(dim=1) - 1) ** 2).mean()
            optimizer.zero_grad()
            (penalty - score.mean()).backward()
            optimizer.step()
    for name, parameter in module.named_parameters():
        # two steps of 0.1 times sums over 5 samples and 3 features, one step after the other
        assert_close(parameter, dict(twin.named_parameters())[name], target, name, terms=30)


@pytest.mark.parametrize("bias", ["vector", "row", None])
def test_saved_tensors_on_the_cpu(bias, target):
    """save_on_cpu: between forward and backward nothing but parameters stays on the device."""
    values = draw(target, BATCH, FEATURES, STATE, bias=bias)
    grads = draw_grads(values)
    results = []
    for function, tensors, weights in (
        (lltm_cell, values, grads),
        (reference.lltm_cell, exact(values), exact(grads)),
    ):
        tensors = each(lambda t: t.clone().requires_grad_(), tensors)
        on_cuda = tensors[0].is_cuda
        with torch.autograd.graph.save_on_cpu(pin_memory=on_cuda):
            outputs = function(*tensors)
        torch.autograd.backward(outputs, weights)
        results.append([t if t is None else t.grad for t in tensors])
    for name, actual, expected in zip(INPUTS, *results):
        if actual is not None:
            assert_close(actual, expected, target, "d_" + name, terms=BATCH)

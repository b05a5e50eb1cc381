"""Derivatives of a sequence: finite differences, any order, any subset, what is kept and edited."""

import contextlib
import gc
import weakref

import pytest
import torch
from helpers import all_equal, assert_close, exact, leaves
from sequence_helpers import (
    INPUTS,
    LOSSES,
    OUTPUTS,
    away_from_the_kink,
    check_sequence,
    draw_masks,
    draw_sequence,
    evaluate,
    pack,
    ragged,
)
from torch.autograd import gradcheck, gradgradcheck
from torch.utils.checkpoint import checkpoint

from lltm_decoupled import lltm_sequence, reference

# torch itself calls what it has deprecated for forward mode.
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning:torch.*")

WAYS = {
    "plain": {},
    "reverse": {"reverse": True},
    "recompute": {"recompute": True},
    "zoneout": {},
    "packed": {},
    "packed backwards with zoneout": {"reverse": True, "recompute": True},
}


def small(target, way, bias="vector"):
    """(function of the inputs alone, inputs) for finite differences."""
    inputs = draw_sequence(target, 3, 2, 2, 3, bias)
    options = dict(WAYS[way])
    if "packed" in way:
        options["batch_sizes"] = ragged(3, 2)
        inputs = pack(inputs, options["batch_sizes"])
    if "zoneout" in way:
        options.update(draw_masks(inputs))
    plain = {name: option for name, option in options.items() if name != "recompute"}
    cpu = {name: t.cpu() if isinstance(t, torch.Tensor) else t for name, t in plain.items()}
    away_from_the_kink(inputs, **cpu)
    return lambda *tensors: lltm_sequence(*tensors, **options), leaves(inputs), plain


@pytest.mark.parametrize("way", WAYS)
def test_gradcheck(way, float64_target):
    function, inputs, _ = small(float64_target, way)
    assert gradcheck(function, inputs, check_undefined_grad=True, check_forward_ad=True)
    assert gradgradcheck(function, inputs)


@pytest.mark.parametrize("bias", ["row", None])
def test_gradcheck_of_other_biases(bias, float64_target):
    function, inputs, _ = small(float64_target, "plain", bias)
    assert gradcheck(function, inputs) and gradgradcheck(function, inputs)


def test_gradcheck_without_a_state(float64_target):
    function, inputs, _ = small(float64_target, "plain")
    assert gradcheck(function, inputs[:3], check_undefined_grad=True, check_forward_ad=True)
    assert gradgradcheck(function, inputs[:3])


@pytest.mark.parametrize("way", WAYS)
def test_gradient_penalty(way, target):
    """Double backward by create_graph=True, of one output and of all, with the right values."""
    if target.dtype in (torch.float16, torch.bfloat16):
        pytest.skip("in half types only the roundings of two sums over all steps are left to see")
    function, inputs, options = small(target, way)
    cpu = {name: t.cpu() if isinstance(t, torch.Tensor) else t for name, t in options.items()}

    def penalty(function, inputs, loss):
        first = torch.autograd.grad(loss(function(*inputs)), inputs[:2], create_graph=True)
        return torch.autograd.grad(sum((t**2).sum() for t in first), inputs, allow_unused=True)

    for loss in LOSSES.values():
        others = leaves(exact(inputs))
        actual = penalty(function, inputs, loss)
        expected = penalty(lambda *t: reference.lltm_sequence(*t, **cpu), others, loss)
        for name, tensor, value in zip(INPUTS, actual, expected):
            assert (tensor is None) == (value is None), name
            if value is not None:
                # products of five factors of size one to five, summed over rows and steps
                assert_close(tensor, value, target, name, terms=400)


SUBSETS = ["i", "w", "b", "h", "c", "iw", "bh", "ic", "wbc", "ihc", "wbhc"]


@pytest.mark.parametrize("recompute", [False, True])
def test_subsets_of_requires_grad(recompute, target):
    values = draw_sequence(target)
    expected = evaluate(reference.lltm_sequence, exact(values))
    for subset in SUBSETS:
        wanted = [letter in subset for letter in "iwbhc"]
        inputs = [t.clone().requires_grad_(want) for t, want in zip(values, wanted)]
        LOSSES["all"](lltm_sequence(*inputs, recompute=recompute)).backward()
        for name, tensor, want in zip(INPUTS, inputs, wanted):
            assert (tensor.grad is not None) == want, (subset, name)
            if want:
                assert_close(tensor.grad, expected["d_" + name], target, f"{subset} {name}", 80)


def test_second_backward(target):
    """retain_graph=True gives the same again; without it torch says what is missing."""
    for recompute in (False, True):
        inputs = leaves(draw_sequence(target))
        loss = LOSSES["all"](lltm_sequence(*inputs, recompute=recompute))
        first = torch.autograd.grad(loss, inputs, retain_graph=True)
        assert all_equal(torch.autograd.grad(loss, inputs), first)
        with pytest.raises(RuntimeError, match="second time"):
            torch.autograd.grad(loss, inputs)


@contextlib.contextmanager
def saving(change=lambda tensor: tensor):
    """Collect what autograd saves; hand `change(tensor)` back to the backward pass."""
    saved = []

    def pack(tensor):
        saved.append(tensor)
        return change(tensor)

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        yield saved


def test_nothing_is_saved_without_a_gradient(target):
    inputs = draw_sequence(target)
    with saving() as saved:
        lltm_sequence(*inputs)
        with torch.no_grad():
            outputs = lltm_sequence(*leaves(inputs))
    assert saved == [] and not any(output.requires_grad for output in outputs)


def test_hooks_see_every_saved_tensor(target):
    values = draw_sequence(target)
    for recompute in (False, True):
        expected = evaluate(lltm_sequence, values, recompute=recompute)
        with saving(torch.clone) as saved:
            actual = evaluate(lltm_sequence, values, recompute=recompute)
        assert saved and all(torch.equal(actual[name], expected[name]) for name in expected)
        with saving(torch.zeros_like):
            zeroed = evaluate(lltm_sequence, values, recompute=recompute)
        for name in ("input", "weights", "h0"):
            assert not zeroed["d_" + name].any(), "backward used a tensor that no hook has seen"


def test_save_on_cpu(target):
    for recompute in (False, True):
        with torch.autograd.graph.save_on_cpu():
            check_sequence(target, draw_sequence(target), recompute=recompute)


def test_recompute_saves_no_steps(target):
    """Beside the arguments and the output only one cell for every 32 steps is kept."""
    steps = 64
    inputs = leaves(draw_sequence(target, steps))
    per_step = inputs[3].numel()
    kept = {}
    for recompute in (False, True):
        with saving() as saved:
            output = lltm_sequence(*inputs, recompute=recompute)[0]
        others = {t.data_ptr() for t in [*inputs, output]}
        kept[recompute] = sum(t.numel() for t in saved if t.data_ptr() not in others)
    assert kept[False] == 4 * steps * per_step  # three activations and the cell
    assert kept[True] <= 2 * per_step


def test_an_edit_never_gives_wrong_gradients(target):
    """What backward needs is refused after an edit; an edit of what it does not need is fine."""
    values = draw_sequence(target)
    others = leaves(exact(values))
    losses = {n: t.sum() for n, t in zip(OUTPUTS, reference.lltm_sequence(*others))}
    for used in OUTPUTS:
        expected = torch.autograd.grad(losses[used], others, retain_graph=True)
        for edited in INPUTS + OUTPUTS:
            if used == edited:
                continue
            inputs = leaves([t.clone() for t in values])
            tensors = dict(zip(INPUTS + OUTPUTS, inputs + list(lltm_sequence(*inputs))))
            try:
                with torch.no_grad() if edited in INPUTS else contextlib.nullcontext():
                    tensors[edited].mul_(2)
                actual = torch.autograd.grad(tensors[used].sum(), inputs)
            except RuntimeError as error:
                assert "inplace" in str(error) or "in-place" in str(error)
                continue
            for name, tensor, value in zip(INPUTS, actual, expected):
                assert_close(tensor, value, target, f"{used} {edited} {name}", terms=80)


def test_an_edited_output_is_refused(target):
    """Backward reads the old h in it."""
    inputs = leaves(draw_sequence(target))
    output, h_n, _ = lltm_sequence(*inputs)
    loss = h_n.sum()
    with torch.no_grad():
        output.mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()


def test_outputs_die_without_the_garbage_collector(target):
    gc.collect()
    gc.disable()
    try:
        outputs = lltm_sequence(*leaves(draw_sequence(target)))
        watched = [weakref.ref(output) for output in outputs]
        del outputs
        assert [ref() for ref in watched] == [None] * 3
    finally:
        gc.enable()


@pytest.mark.parametrize("use_reentrant", [False, True])
def test_checkpoint(use_reentrant, target):
    values = draw_sequence(target)
    tensors = leaves(values)
    outputs = checkpoint(lltm_sequence, *tensors, use_reentrant=use_reentrant)
    LOSSES["all"](outputs).backward()
    expected = evaluate(reference.lltm_sequence, exact(values))
    for name, tensor in zip(INPUTS, tensors):
        assert_close(tensor.grad, expected["d_" + name], target, name, terms=80)


def test_memory_does_not_grow_without_backward(cuda_target):
    inputs = leaves(draw_sequence(cuda_target, 8, 16, 32, 64))
    lltm_sequence(*inputs)
    before = torch.cuda.memory_allocated(cuda_target.device)
    for _ in range(100):
        lltm_sequence(*inputs)
    assert torch.cuda.memory_allocated(cuda_target.device) == before

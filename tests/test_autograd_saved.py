"""What autograd keeps of a cell between forward and backward, and for how long."""

import contextlib
import gc
import weakref

import pytest
import torch
from helpers import (
    INPUTS,
    OUTPUTS,
    assert_close,
    check_against_reference,
    draw,
    draw_grads,
    evaluate,
    exact,
    leaves,
)
from torch.utils.checkpoint import checkpoint

from lltm_decoupled import lltm_cell, reference


@contextlib.contextmanager
def counting_saved_tensors(change=lambda tensor: tensor):
    """Collect what autograd saves; hand `change(tensor)` back to the backward pass."""
    saved = []

    def pack(tensor):
        saved.append(tensor.shape)
        return change(tensor)

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        yield saved


def test_nothing_is_saved_without_a_gradient(target):
    inputs = draw(target)
    with counting_saved_tensors() as saved:
        outputs = lltm_cell(*inputs)
        with torch.no_grad():
            outputs += lltm_cell(*leaves(inputs))
        with torch.inference_mode():
            outputs += lltm_cell(*leaves(inputs))
    assert saved == []
    assert not any(output.requires_grad or output.grad_fn for output in outputs)


def test_saved_tensor_hooks_see_every_saved_tensor(target):
    """What the hooks give back is what backward uses: offloading and compression work."""
    inputs = draw(target)
    grads = draw_grads(inputs)
    expected = evaluate(lltm_cell, inputs, grads)
    with counting_saved_tensors(lambda tensor: tensor.clone()) as saved:
        actual = evaluate(lltm_cell, inputs, grads)
    assert saved
    assert all(torch.equal(actual[name], expected[name]) for name in expected)
    with counting_saved_tensors(torch.zeros_like):
        zeroed = evaluate(lltm_cell, inputs, grads)
    assert not zeroed["d_weights"].any(), "backward used a tensor that no hook has seen"


def test_editing_the_weights_before_backward_is_noticed(target):
    """An optimizer step between forward and backward: d_input needs the weights as they were."""
    inputs = leaves(draw(target))
    loss = sum(output.sum() for output in lltm_cell(*inputs))
    with torch.no_grad():
        inputs[1].mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()


EDITS = [(used, edited) for used in OUTPUTS for edited in INPUTS + OUTPUTS if used != edited]


@pytest.mark.parametrize("used, edited", EDITS)
def test_an_edit_never_gives_wrong_gradients(used, edited, target):
    """What backward needs is refused after an edit; an edit of what it does not need is fine."""
    values = draw(target)
    inputs = leaves([t.clone() for t in values])
    tensors = dict(zip(INPUTS + OUTPUTS, inputs + list(lltm_cell(*inputs))))
    try:
        with torch.no_grad() if edited in INPUTS else contextlib.nullcontext():
            tensors[edited].mul_(2)
        actual = torch.autograd.grad(tensors[used].sum(), inputs)
    except RuntimeError as error:
        assert "inplace" in str(error) or "in-place" in str(error)
        return
    others = leaves(exact(values))
    loss = reference.lltm_cell(*others)[OUTPUTS.index(used)].sum()
    for name, tensor, value in zip(INPUTS, actual, torch.autograd.grad(loss, others)):
        assert_close(tensor, value, target, "d_" + name, terms=5)


def test_outputs_die_without_the_garbage_collector(target):
    """A reference cycle through the graph would keep every step of a long run alive."""
    inputs = leaves(draw(target))
    gc.collect()
    gc.disable()
    try:
        outputs = lltm_cell(*inputs)
        watched = [weakref.ref(output) for output in outputs]
        del outputs
        assert [ref() for ref in watched] == [None, None]
    finally:
        gc.enable()


@pytest.mark.parametrize("use_reentrant", [False, True])
@pytest.mark.parametrize("bias", ["vector", "row", None])
def test_checkpoint(bias, use_reentrant, target):
    inputs = draw(target, bias=bias)

    def checkpointed(*tensors):
        return checkpoint(lltm_cell, *tensors, use_reentrant=use_reentrant)

    if use_reentrant:  # does not take part in autograd.grad(): .backward() only
        tensors, grads = leaves(inputs), draw_grads(inputs)
        torch.autograd.backward(checkpointed(*tensors), grads)
        expected = evaluate(reference.lltm_cell, exact(inputs), exact(grads))
        for name, tensor in zip(INPUTS, tensors):
            if tensor is not None:
                assert_close(tensor.grad, expected["d_" + name], target, name, terms=5)
    else:
        check_against_reference(checkpointed, inputs, target)


def test_memory_does_not_grow_without_backward(cuda_target):
    """Steps that are run with gradients and thrown away leave nothing on the GPU."""
    inputs = leaves(draw(cuda_target, 64, 32, 128))
    lltm_cell(*inputs)
    before = torch.cuda.memory_allocated(cuda_target.device)
    for _ in range(300):
        lltm_cell(*inputs)
    assert torch.cuda.memory_allocated(cuda_target.device) == before

"""Streams, other devices, CUDA graphs, meta tensors, and a build without CUDA."""

import gc
from pathlib import Path

import pytest
import torch
from helpers import (
    INPUTS,
    assert_close,
    assert_same_results,
    check_against_reference,
    draw,
    draw_grads,
    evaluate,
    exact,
    leaves,
)

import lltm_decoupled
from lltm_decoupled import LLTM, lltm_cell, reference

CYCLES = 50_000_000  # some 30 ms: longer than it takes to launch everything that follows


def test_side_stream(cuda_target):
    """All work is queued on the caller's stream, behind a long wait; the default stream is idle."""
    inputs, grads = draw(cuda_target), draw_grads(draw(cuda_target))
    expected = evaluate(reference.lltm_cell, exact(inputs), exact(grads))
    stale = [torch.zeros_like(t) for t in inputs]
    stale_grads = [torch.zeros_like(t) for t in grads]
    torch.cuda.synchronize()
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        torch.cuda._sleep(CYCLES)
        for late, tensor in zip(stale + stale_grads, inputs + grads):
            late.copy_(tensor)
        actual = evaluate(lltm_cell, stale, stale_grads)
        outputs = lltm_decoupled.forward(*stale)
        d_values = lltm_decoupled.backward(*stale_grads, *outputs[1:], stale[1])
    stream.synchronize()
    assert_same_results(actual, expected, cuda_target, batch_size=5)
    for index, name in ((0, "new_h"), (1, "new_cell")):
        assert_close(outputs[index], expected[name], cuda_target, name)
    assert_close(d_values[2], expected["d_weights"], cuda_target, "d_weights", terms=5)


def test_nothing_waits_for_the_gpu(cuda_target):
    """The calls return while the stream is still busy, and torch sees no synchronising call."""
    inputs = leaves(draw(cuda_target))
    grads = draw_grads(inputs)

    def run():
        torch.autograd.grad(lltm_cell(*inputs), inputs, grads)
        with torch.no_grad():
            outputs = lltm_decoupled.forward(*inputs)
            lltm_decoupled.backward(*grads, *outputs[1:], inputs[1])

    run()  # warm up: loading a kernel for the first time may wait
    torch.cuda.synchronize()
    torch.cuda.set_sync_debug_mode("error")
    try:
        torch.cuda._sleep(10 * CYCLES)
        slept = torch.cuda.Event()
        slept.record()
        run()
        assert not slept.query(), "a call waited for the GPU"
    finally:
        torch.cuda.set_sync_debug_mode("default")
        torch.cuda.synchronize()


def captured(run):
    """Capture run() in a CUDA graph after a warm-up on a side stream, as torch asks for."""
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(3):
            run()
    torch.cuda.current_stream().wait_stream(stream)
    gc.collect()  # a compiled kernel of another test that is freed during the capture breaks it
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        outputs = run()
    return graph, outputs


def test_graph_capture_of_forward(cuda_target):
    inputs = draw(cuda_target)
    graph, outputs = captured(lambda: lltm_cell(*inputs))
    for _ in range(3):
        for static, tensor in zip(inputs, draw(cuda_target)):
            static.copy_(tensor)
        graph.replay()
        for output, expected in zip(outputs, reference.lltm_cell(*exact(inputs))):
            assert_close(output, expected, cuda_target)


def test_graph_capture_of_forward_and_backward(cuda_target):
    inputs, grads = leaves(draw(cuda_target)), draw_grads(draw(cuda_target))
    graph, gradients = captured(lambda: torch.autograd.grad(lltm_cell(*inputs), inputs, grads))
    with torch.no_grad():
        for static, tensor in zip(inputs, draw(cuda_target)):
            static.copy_(tensor)
    graph.replay()
    expected = evaluate(reference.lltm_cell, exact(inputs), exact(grads))
    for name, gradient in zip(INPUTS, gradients):
        assert_close(gradient, expected["d_" + name], cuda_target, "d_" + name, terms=5)


def test_graphed_module(cuda_target):
    """make_graphed_callables captures forward and backward of a module for training."""
    module = LLTM(3, 4, device=cuda_target.device, dtype=cuda_target.dtype)
    eager = reference.LLTM(3, 4, dtype=torch.float64)
    eager.load_state_dict({name: t.cpu().double() for name, t in module.state_dict().items()})

    class Flat(torch.nn.Module):  # it takes tensors only, no tuple of states
        def __init__(self):
            super().__init__()
            self.cell = module

        def forward(self, input, old_h, old_cell):
            return self.cell(input, (old_h, old_cell))

    input, _, _, old_h, old_cell = draw(cuda_target)
    gc.collect()  # as in captured()
    graphed = torch.cuda.make_graphed_callables(Flat(), (input, old_h, old_cell))
    input, _, _, old_h, old_cell = values = draw(cuda_target)
    graphed(input, old_h, old_cell)[0].sum().backward()
    input, _, _, old_h, old_cell = exact(values)
    eager(input, (old_h, old_cell))[0].sum().backward()
    assert_close(module.weights.grad, eager.weights.grad, cuda_target, "d_weights", terms=5)


def test_other_gpu_while_the_first_is_current(second_gpu_target):
    """Outputs on the inputs' device, the current device as before, no work on the first GPU."""
    assert torch.cuda.current_device() == 0
    torch.cuda.synchronize(0)
    before = torch.cuda.memory_allocated(0)
    inputs = draw(second_gpu_target)
    check_against_reference(lltm_cell, inputs, second_gpu_target)
    module = LLTM(3, 4, device=second_gpu_target.device, dtype=second_gpu_target.dtype)
    assert module(inputs[0])[0].device == torch.device(second_gpu_target.device)
    assert torch.cuda.current_device() == 0
    assert torch.cuda.memory_allocated(0) <= before  # less where an earlier test's memory went


def test_mixed_gpus_are_refused(second_gpu_target):
    inputs = draw(second_gpu_target)
    for position in range(len(INPUTS)):
        mixed = list(inputs)
        mixed[position] = inputs[position].to("cuda:0")
        with pytest.raises(RuntimeError, match="cuda:[01].*cuda:[01]"):
            lltm_cell(*mixed)
    check_against_reference(lltm_cell, inputs, second_gpu_target)


def test_a_state_dict_moves_between_devices(cuda_target):
    on_cpu = LLTM(3, 4, dtype=cuda_target.dtype)
    on_gpu = LLTM(3, 4, device=cuda_target.device, dtype=cuda_target.dtype)
    on_gpu.load_state_dict(on_cpu.state_dict())
    input, _, _, *state = draw(cuda_target)
    cpu_state = [t.cpu() for t in state]
    for actual, expected in zip(on_gpu(input, state), on_cpu(input.cpu(), cpu_state)):
        assert_close(actual, expected, cuda_target)


needs_library = pytest.mark.skipif(
    not hasattr(torch, "library"),
    reason=f"torch {torch.__version__} has no torch.library for shape functions",
)


@needs_library
@pytest.mark.parametrize("bias", ["vector", "row", None])
def test_meta_tensors_give_shapes(bias, target):
    """For torch's shape inference: no memory is touched."""
    inputs = [t if t is None else t.to("meta") for t in draw(target, bias=bias)]
    for output in lltm_cell(*inputs):
        assert output.shape == (5, 4)
        assert (output.device.type, output.dtype) == ("meta", target.dtype)
        assert output.is_contiguous()


def test_meta_tensors_are_checked_too(target):
    inputs = [t.to("meta") for t in draw(target)]
    inputs[3] = torch.empty(5, 9, dtype=target.dtype, device="meta")
    with pytest.raises(RuntimeError, match="old_h|weights"):
        lltm_cell(*inputs)
    with pytest.raises(RuntimeError, match="input"):
        lltm_cell(*[t.to("meta", torch.int64) for t in draw(target)])


@pytest.mark.parametrize("position", range(5), ids=INPUTS)
def test_meta_among_real_tensors_is_refused(position, target):
    """A meta tensor has no memory: its pointer must not be taken."""
    inputs = draw(target)
    inputs[position] = inputs[position].to("meta")
    with pytest.raises(RuntimeError, match="meta"):
        lltm_cell(*inputs)
    with pytest.raises(RuntimeError, match="meta"):
        lltm_decoupled.forward(*inputs)


def test_build_without_cuda_says_so_and_how_to_rebuild():
    if lltm_decoupled.build_info()["cuda"]:
        pytest.skip("this binary was built with CUDA")
    if hasattr(torch._C, "_dispatch_has_kernel_for_dispatch_key"):  # not in torch 1.11
        # The dispatcher must reach our message, not its own "could not run" text.
        assert torch._C._dispatch_has_kernel_for_dispatch_key("lltm_decoupled::cell", "CUDA")
    if torch.cuda.is_available():
        inputs = [torch.randn(s, device="cuda") for s in ((5, 3), (12, 7), (12,), (5, 4), (5, 4))]
        for function in (lltm_cell, lltm_decoupled.forward):
            with pytest.raises(RuntimeError, match="without CUDA.*LLTM_WITH_CUDA=1"):
                function(*inputs)
        return
    # No CUDA tensor can be made here: then the text itself must at least be in the binary.
    from lltm_decoupled import _C

    binary = Path(_C.__file__).read_bytes()
    assert b"without CUDA" in binary and b"LLTM_WITH_CUDA=1" in binary

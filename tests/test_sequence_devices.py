"""Sequences on a GPU: streams, CUDA graphs, other GPUs, and the memory that they take."""

import pytest
import torch
from helpers import assert_close, exact, leaves
from layer_helpers import draw_layer_call, exact_parameters, flat, loop_of_cells, make, weigh
from sequence_helpers import (
    LOSSES,
    assert_same_sequences,
    check_sequence,
    draw_masks,
    draw_sequence,
    evaluate,
    pack,
    ragged,
)
from test_devices import CYCLES, captured

from lltm_decoupled import lltm_sequence, reference

WAYS = ["plain", "reverse", "packed", "zoneout", "recompute"]


def options_of(way, inputs):
    options = {"reverse": way == "reverse", "recompute": way == "recompute"}
    if way == "packed":
        options["batch_sizes"] = ragged(*inputs[0].shape[:2])
        inputs = pack(inputs, options["batch_sizes"])
    if way == "zoneout":
        options.update(draw_masks(inputs))
    return inputs, options


def expected_of(inputs, options):
    others = {n: o.cpu() if isinstance(o, torch.Tensor) else o for n, o in options.items()}
    del others["recompute"]
    return evaluate(reference.lltm_sequence, exact(inputs), **others)


@pytest.mark.parametrize("way", WAYS)
def test_side_stream(way, cuda_target):
    """All work is queued on the caller's stream, behind a long wait; the default stream is idle."""
    inputs, options = options_of(way, draw_sequence(cuda_target))
    expected = expected_of(inputs, options)
    late = [torch.zeros_like(t) for t in inputs]
    torch.cuda.synchronize()
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        torch.cuda._sleep(CYCLES)
        for tensor, value in zip(late, inputs):
            tensor.copy_(value)
        actual = evaluate(lltm_sequence, late, **options)
    stream.synchronize()
    assert_same_sequences(actual, expected, cuda_target, way)


def test_nothing_waits_for_the_gpu(cuda_target):
    runs = []
    for way in WAYS:
        inputs, options = options_of(way, draw_sequence(cuda_target, steps=40))
        runs.append((leaves(inputs), options))

    def run():
        for inputs, options in runs:
            outputs = lltm_sequence(*inputs, **options)
            torch.autograd.grad(sum(output.sum() for output in outputs), inputs)

    run()  # warm up: loading a kernel for the first time may wait
    torch.cuda.synchronize()
    torch.cuda.set_sync_debug_mode("error")
    try:
        run()
    finally:
        torch.cuda.set_sync_debug_mode("default")
        torch.cuda.synchronize()


@pytest.mark.parametrize("way", WAYS)
def test_graph_capture(way, cuda_target):
    """Forward and backward, replayed with new inputs. batch_sizes are the graph's own."""
    inputs, options = options_of(way, draw_sequence(cuda_target))
    inputs = leaves(inputs)

    def run():
        outputs = lltm_sequence(*inputs, **options)
        weights = [0.5, 2.0, -1.0]
        loss = sum((output * weight).sum() for output, weight in zip(outputs, weights))
        return [*outputs, *torch.autograd.grad(loss, inputs)]

    graph, results = captured(run)
    for _ in range(2):
        with torch.no_grad():
            for static in inputs:
                static.copy_(torch.randn(static.shape, dtype=torch.float64) / 2)
        graph.replay()
        torch.cuda.synchronize()
        replayed = [t.clone() for t in results]
        for number, (actual, value) in enumerate(zip(replayed, run())):
            assert_close(actual, value, cuda_target, f"{way} {number}", terms=80)


def test_graphed_layer_trains(cuda_target):
    """make_graphed_callables over forward and backward of two layers, several steps."""

    class Flat(torch.nn.Module):  # it takes and gives tensors only, no tuple of states
        def __init__(self, rnn):
            super().__init__()
            self.rnn = rnn

        def forward(self, input, h0, c0):
            return tuple(flat(self.rnn(input, (h0, c0))))

    module = make(cuda_target, 3, 4, 2, bidirectional=True)
    input, state = draw_layer_call(module)
    graphed = torch.cuda.make_graphed_callables(Flat(module), (input, *state))
    for _ in range(2):
        input, state = draw_layer_call(module)
        module.zero_grad()
        outputs = graphed(input, *state)
        weigh(outputs[1:]).backward()
        parameters = exact_parameters(module)
        rows, *finals = loop_of_cells(module, parameters, *exact([input]), exact(state))
        values = torch.autograd.grad(weigh(finals), list(parameters.values()))
        assert_close(outputs[0], torch.stack(rows, 1), cuda_target, terms=6)
        for (name, parameter), value in zip(module.named_parameters(), values):
            assert_close(parameter.grad, value, cuda_target, name, terms=600)  # 30 rows, two layers
        with torch.no_grad():
            for parameter in module.parameters():
                parameter.sub_(0.1 * parameter.grad)


def test_another_gpu_while_the_first_is_current(second_gpu_target):
    torch.cuda.synchronize(0)
    before = torch.cuda.memory_allocated(0)
    for way in WAYS:
        inputs, options = options_of(way, draw_sequence(second_gpu_target))
        check_sequence(second_gpu_target, inputs, **options)
    module = make(second_gpu_target, 3, 4, 2, dropout=0.2, zoneout=(0.2, 0.2))
    output = module(draw_layer_call(module)[0])[0]
    assert output.device == torch.device(second_gpu_target.device)
    assert torch.cuda.memory_allocated(0) <= before  # less where an earlier test's memory went


def test_a_side_stream_of_another_gpu(second_gpu_target):
    inputs = draw_sequence(second_gpu_target)
    expected = evaluate(reference.lltm_sequence, exact(inputs))
    late = [torch.zeros_like(t) for t in inputs]
    torch.cuda.synchronize(1)
    stream = torch.cuda.Stream(device=1)
    with torch.cuda.stream(stream):
        torch.cuda._sleep(CYCLES)
        for tensor, value in zip(late, inputs):
            tensor.copy_(value)
        with torch.cuda.device(0):  # GPU 1 keeps its side stream while GPU 0 is current
            actual = evaluate(lltm_sequence, late)
    stream.synchronize()
    assert_same_sequences(actual, expected, second_gpu_target)


def peak(device, run):
    """The bytes that run() needs at most, over what was there before."""
    torch.cuda.synchronize(device)
    torch.cuda.reset_peak_memory_stats(device)
    before = torch.cuda.memory_allocated(device)
    kept = run()
    torch.cuda.synchronize(device)
    del kept
    return torch.cuda.max_memory_allocated(device) - before


def test_memory_without_a_gradient(cuda_target):
    """The output, and what a bounded number of steps needs: nothing that grows with the steps."""
    steps = 8192
    inputs = draw_sequence(cuda_target, steps, 16, 1, 64)
    with torch.no_grad():
        lltm_sequence(*inputs)  # cuBLAS takes its workspace
        used = peak(cuda_target.device, lambda: lltm_sequence(*inputs))
    step = 16 * 64 * inputs[0].element_size()
    # the gates of some steps, states in float32, and blocks of up to 2 MiB of the allocator
    assert used <= steps * step + 16 * 2**20 + 20 * step + 2 * 2**21


def test_memory_with_recomputation(cuda_target):
    """Between forward and backward it keeps the output, where else four times as much is added."""
    steps = 512
    inputs = leaves(draw_sequence(cuda_target, steps, 16, 32, 64))
    device, kept = cuda_target.device, {}
    for recompute in (True, False):
        LOSSES["all"](lltm_sequence(*inputs, recompute=recompute)).backward()
        torch.cuda.synchronize(device)
        before = torch.cuda.memory_allocated(device)
        outputs = lltm_sequence(*inputs, recompute=recompute)
        kept[recompute] = torch.cuda.memory_allocated(device) - before
        del outputs
    step = 16 * 64 * inputs[0].element_size()
    assert kept[False] >= 4 * steps * step  # output, activations, cells: 5, or little less
    assert kept[True] <= (steps + steps // 8 + 8) * step + 2**20


def test_the_layer_moves_between_devices(cuda_target):
    on_cpu = make(cuda_target._replace(device="cpu"), 3, 4, 2, bidirectional=True)
    on_gpu = make(cuda_target, 3, 4, 2, bidirectional=True)
    on_gpu.load_state_dict(on_cpu.state_dict())
    input, state = draw_layer_call(on_gpu)
    expected = flat(on_cpu(input.cpu(), tuple(part.cpu() for part in state)))
    for actual, value in zip(flat(on_gpu(input, state)), expected):
        assert_close(actual, value, cuda_target, terms=6)

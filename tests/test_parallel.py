"""Several GPUs and several processes: DataParallel, DDP, the streams and graphs of other GPUs."""

import pytest
import torch
from conftest import TARGETS, require_device
from helpers import (
    assert_close,
    assert_same_results,
    draw,
    draw_grads,
    evaluate,
    exact,
)
from process_helpers import join_group, leave_group
from torch import distributed
from torch.nn.parallel import DataParallel, DistributedDataParallel

from lltm_decoupled import LLTM, lltm_cell, reference

PROCESSES = 2
FLOAT64 = next(t for t in TARGETS if t.device == "cpu" and t.dtype == torch.float64)


def whole_batch(steps=2):
    """Input and state of both processes together, for each step; the same in every process."""
    torch.manual_seed(7)
    batches = [draw(FLOAT64, batch_size=3 * PROCESSES) for _ in range(steps)]
    return [(input, old_h, old_cell) for input, _, _, old_h, old_cell in batches]


def train(model, batches, device="cpu"):
    """SGD on the mean over the batch; -> the gradients of every step and the parameters at last."""
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    results = []
    for batch in batches:
        input, old_h, old_cell = (t.to(device) for t in batch)
        new_h, new_cell = model(input, (old_h, old_cell))
        optimizer.zero_grad()
        (new_h * new_cell).sum(dim=1).mean().backward()
        results += [p.grad.detach().cpu().clone() for p in model.parameters()]
        optimizer.step()
    return results + [p.detach().cpu().clone() for p in model.parameters()]


def work(rank, backend, folder):
    """One process of two: its half of every batch."""
    join_group(backend, folder, rank, PROCESSES)
    device = f"cuda:{rank}" if backend == "nccl" else "cpu"
    if backend == "nccl":
        torch.cuda.set_device(rank)
    torch.manual_seed(rank)  # DDP gives every process the parameters of the first
    module = LLTM(3, 4, dtype=torch.float64).to(device)
    model = DistributedDataParallel(module, device_ids=[rank] if backend == "nccl" else None)
    half = slice(3 * rank, 3 * (rank + 1))
    batches = [[tensor[half] for tensor in batch] for batch in whole_batch()]
    torch.save(train(model, batches, device), str(folder / f"{rank}.pt"))
    del model
    leave_group()


@pytest.mark.parametrize("backend", ["gloo", "nccl"])
def test_two_processes_train_as_one(backend, tmp_path):
    """Gradients and parameters of DDP equal those of one process on the whole batch."""
    if not distributed.is_available():
        pytest.skip("this torch has no torch.distributed")
    if backend == "nccl":
        require_device("cuda:1")
        if not distributed.is_nccl_available():
            pytest.skip("this torch has no NCCL")
    torch.multiprocessing.spawn(work, (backend, tmp_path), PROCESSES)
    torch.manual_seed(0)
    expected = train(reference.LLTM(3, 4, dtype=torch.float64), whole_batch())
    for rank in range(PROCESSES):
        actual = torch.load(str(tmp_path / f"{rank}.pt"))
        assert len(actual) == len(expected) == 6
        for number, (tensor, value) in enumerate(zip(actual, expected)):
            assert_close(tensor, value, FLOAT64, f"process {rank}, tensor {number}", terms=6)


@pytest.mark.parametrize("batch_size", [4, 5, 1])  # even, uneven, fewer rows than GPUs
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("with_state", [True, False])
def test_data_parallel(with_state, bias, batch_size, second_gpu_target):
    """Replicas on two GPUs: the values and gradients of one GPU, gathered on the first."""
    target = second_gpu_target._replace(device="cuda:0")
    module = LLTM(3, 4, bias, device=target.device, dtype=target.dtype)
    twin = reference.LLTM(3, 4, bias, dtype=torch.float64)
    twin.load_state_dict(dict(zip(module.state_dict(), exact(module.state_dict().values()))))
    input, _, _, *state = draw(target, batch_size)
    state = tuple(state) if with_state else None
    outputs = DataParallel(module, device_ids=[0, 1])(input, state)
    expected = twin(*exact([input]), exact(state) if with_state else None)
    for output, value in zip(outputs, expected):
        assert output.device == torch.device("cuda:0")
        assert_close(output, value, target)
    sum((output * output).sum() for output in outputs).backward()
    sum((value * value).sum() for value in expected).backward()
    for (name, parameter), value in zip(module.named_parameters(), twin.parameters()):
        assert_close(parameter.grad, value.grad, target, name, terms=batch_size)


def test_side_stream_of_another_gpu(second_gpu_target):
    """The stream that is current on the inputs' GPU is used, not that of the current GPU."""
    inputs = draw(second_gpu_target)
    grads = draw_grads(inputs)
    expected = evaluate(reference.lltm_cell, exact(inputs), exact(grads))
    late = [torch.zeros_like(t) for t in inputs]
    torch.cuda.synchronize(1)
    stream = torch.cuda.Stream(device=1)
    with torch.cuda.stream(stream):
        torch.cuda._sleep(50_000_000)  # some 30 ms, in which the cell is called
        for tensor, value in zip(late, inputs):
            tensor.copy_(value)
        with torch.cuda.device(0):  # GPU 1 keeps its side stream while GPU 0 is current
            actual = evaluate(lltm_cell, late, grads)
    stream.synchronize()
    assert_same_results(actual, expected, second_gpu_target, batch_size=5)


def test_a_graph_on_another_gpu(second_gpu_target):
    inputs = draw(second_gpu_target)
    with torch.cuda.device(1):
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            lltm_cell(*inputs)
        torch.cuda.current_stream().wait_stream(stream)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, stream=stream):  # torch's own may belong to the first GPU
            outputs = lltm_cell(*inputs)
        for static, tensor in zip(inputs, draw(second_gpu_target)):
            static.copy_(tensor)
        graph.replay()
        torch.cuda.synchronize()
    for output, value in zip(outputs, reference.lltm_cell(*exact(inputs))):
        assert_close(output, value, second_gpu_target)


def test_a_graphed_cell_trains(cuda_target):
    """make_graphed_callables over forward and backward: several optimizer steps, d_input too."""

    class Step(torch.nn.Module):  # graphed callables take tensors only, no tuple of states
        def __init__(self, cell):
            super().__init__()
            self.cell = cell

        def forward(self, input, old_h, old_cell):
            return self.cell(input, (old_h, old_cell))

    module = LLTM(3, 4, device=cuda_target.device, dtype=cuda_target.dtype)
    twin = reference.LLTM(3, 4, dtype=torch.float64)
    twin.load_state_dict(dict(zip(module.state_dict(), exact(module.state_dict().values()))))

    def draw_leaves():
        input, _, _, old_h, old_cell = draw(cuda_target)
        return [t.requires_grad_() for t in (input, old_h, old_cell)]

    graphed = torch.cuda.make_graphed_callables(Step(module), tuple(draw_leaves()))
    optimizers = [torch.optim.SGD(m.parameters(), lr=0.1) for m in (module, twin)]
    for step in range(3):
        results = []
        inputs = draw_leaves()
        for model, optimizer, tensors in zip(
            (graphed, Step(twin)), optimizers, (inputs, [t.requires_grad_() for t in exact(inputs)])
        ):
            new_h, new_cell = model(*tensors)
            optimizer.zero_grad(set_to_none=True)  # the gradients are the graph's own memory
            (new_h * new_cell).sum().backward()
            optimizer.step()
            results.append([new_h, new_cell, *(t.grad for t in tensors)])
        for actual, value in zip(*results):
            # each step starts from parameters that carry the sums over 5 samples of those before
            assert_close(actual, value, cuda_target, f"step {step}", terms=15)
    for (name, parameter), value in zip(module.named_parameters(), twin.parameters()):
        assert_close(parameter, value, cuda_target, name, terms=15)

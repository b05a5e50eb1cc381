"""Many threads, and many processes, run sequences at once."""

import threading

import pytest
import torch
from conftest import TARGETS, require_device
from helpers import all_equal, assert_close, exact
from layer_helpers import draw_layer_call, make
from process_helpers import join_group, leave_group
from sequence_helpers import assert_same_sequences, draw_sequence, evaluate
from test_threads import test_the_interpreter_is_released as check_the_interpreter_is_released
from torch import distributed
from torch.nn.parallel import DistributedDataParallel

from lltm_decoupled import LLTMSequence, lltm_sequence, reference

PROCESSES, THREADS, ROUNDS = 2, 4, 5
FLOAT64 = next(t for t in TARGETS if t.device == "cpu" and t.dtype == torch.float64)


def test_the_interpreter_is_released():
    def one_step(input, weights, bias, old_h, old_cell):
        return lltm_sequence(input[None], weights, bias, old_h, old_cell)

    check_the_interpreter_is_released(one_step)


def test_threads_share_weights(target):
    """Each thread with sizes of its own; values, gradients, and errors in between."""
    jobs = []
    shared = draw_sequence(target)
    for number in range(THREADS):
        inputs = draw_sequence(target, 2 + 9 * number, 1 + number)
        inputs[1:3] = shared[1:3]
        options = {"reverse": number % 2 == 1, "recompute": number % 4 > 1}
        expected = evaluate(reference.lltm_sequence, exact(inputs), reverse=options["reverse"])
        jobs.append((inputs, options, expected))
    start, failures, finished = threading.Barrier(THREADS), [], []

    def work(inputs, options, expected):
        try:
            start.wait(timeout=60)
            for _ in range(ROUNDS):
                actual = evaluate(lltm_sequence, inputs, **options)
                with pytest.raises(RuntimeError, match="h0"):
                    lltm_sequence(*inputs[:3], inputs[3][:, 1:], inputs[4])
                assert_same_sequences(actual, expected, target)
            finished.append(options)
        except BaseException as error:  # of a thread: the main one raises it below
            failures.append(error)

    threads = [threading.Thread(target=work, args=job) for job in jobs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]
    assert len(finished) == THREADS


def test_one_module_in_many_threads(target):
    """Calls of one module share nothing but its parameters."""
    module = make(target, 3, 4, 2, bidirectional=True)
    calls = [draw_layer_call(module, 3 + n, 2 + n) for n in range(THREADS)]
    expected = [module(*call)[0] for call in calls]
    results = [None] * THREADS

    def work(number):
        results[number] = [module(*calls[number])[0] for _ in range(ROUNDS)]

    threads = [threading.Thread(target=work, args=(n,)) for n in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for found, value in zip(results, expected):
        assert all_equal(found, [value] * ROUNDS)


OPTIONS = {"num_layers": 2, "bidirectional": True, "dtype": torch.float64}


def train(model, device="cpu", rows=slice(None)):
    """SGD on the mean over the batch; -> the gradients of every step and the parameters at last."""
    torch.manual_seed(7)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    results = []
    for _ in range(2):
        input = torch.randn(6, 3 * PROCESSES, 3, dtype=torch.float64)
        state = [torch.randn(4, 3 * PROCESSES, 4, dtype=torch.float64) for _ in "hc"]
        input, *state = (t[:, rows].to(device) for t in (input, *state))
        output, (h_n, c_n) = model(input, tuple(state))
        optimizer.zero_grad()
        (output.square().sum((0, 2)).mean() + (h_n * c_n).sum((0, 2)).mean()).backward()
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
    module = LLTMSequence(3, 4, **OPTIONS).to(device)
    model = DistributedDataParallel(module, device_ids=[rank] if backend == "nccl" else None)
    results = train(model, device, slice(3 * rank, 3 * (rank + 1)))
    torch.save(results, str(folder / f"{rank}.pt"))
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
    expected = train(reference.LLTMSequence(3, 4, **OPTIONS))
    for rank in range(PROCESSES):
        actual = torch.load(str(tmp_path / f"{rank}.pt"))
        assert len(actual) == len(expected) == 24
        for number, (tensor, value) in enumerate(zip(actual, expected)):
            # 36 rows, through two layers
            assert_close(tensor, value, FLOAT64, f"process {rank}, tensor {number}", terms=100)

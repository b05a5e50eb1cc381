"""How the benchmarks time: contenders take turns, and a call ends when the device has ended."""

import gc
import time

import torch

TURN_SECONDS = 1.0  # a turn ends at the call in which this has passed


def measure(runs, turns, calls):
    """Let contenders take turns of so many calls, so that a busy machine is as busy for each.

    runs: {name: a function that makes one call and returns what it took}

    Returns ({name: what each call took}, {name: the error that ended it}).
    """
    taken = {name: [] for name in runs}
    errors = {}
    for turn in range(turns + 1):
        for name in list(taken):
            try:
                found = _turn(runs[name], calls)
            except Exception as error:  # of any library
                errors[name] = in_a_line(error)
                del taken[name]
                continue
            # The first turn warms up. The first calls of the others find the caches as another
            # contender left them.
            if turn > 0:
                taken[name] += found[len(found) // 4 :]
    return taken, errors


def _turn(run, calls):
    found, end = [], time.perf_counter() + TURN_SECONDS
    while len(found) < calls and (not found or time.perf_counter() < end):
        found.append(run())
    return found


def timed(run, device, repeats=1):
    """A function that calls `run`, which does a thing so many times, and returns its seconds."""
    synchronize = synchronizer(device)

    def call():
        synchronize()
        start = time.perf_counter()
        run()
        synchronize()
        return (time.perf_counter() - start) / repeats

    return call


def synchronizer(device):
    """A function that waits until the device has ended."""
    if device.type != "cuda":
        return lambda: None
    return lambda: torch.cuda.synchronize(device)


def captured(run, repeats):
    """A function that replays so many calls of `run` as one CUDA graph."""
    # Libraries make handles and buffers in their first calls, which a capture forbids; on a stream
    # of its own, for a capture runs on one.
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            run()
    torch.cuda.current_stream().wait_stream(side)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(repeats):
            run()
    return graph.replay


def release(device):
    """Give a device's memory back that nothing refers to: graphs keep pools of their own."""
    gc.collect()
    if device.type == "cuda":
        torch.cuda.synchronize(device)
        torch.cuda.empty_cache()


def in_a_line(error):
    """What an exception says, in one line that is not too long."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    told = f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__
    return told if len(told) <= 200 else told[:197] + "..."

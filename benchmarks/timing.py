"""How the benchmarks time: contenders take turns, and a call ends when the device has ended."""

import time

import torch


def measure(passes, device, turns, calls):
    """{name: seconds of each call}; the contenders take turns of so many calls."""
    synchronize = torch.cuda.synchronize if device == "cuda" else lambda: None
    times = {name: [] for name in passes}
    for turn in range(turns + 1):
        for name, run in passes.items():
            for call in range(calls):
                synchronize()
                start = time.perf_counter()
                run()
                synchronize()
                # A turn's first calls find the caches as another contender left them.
                if turn > 0 and call >= calls // 4:
                    times[name].append(time.perf_counter() - start)
    return times


def captured(run, repeats):
    """A function that replays so many calls of `run` as one CUDA graph."""
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        for _ in range(3):
            run()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(repeats):
            run()
    return graph.replay

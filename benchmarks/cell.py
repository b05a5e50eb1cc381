"""Times one step of the cell, from Python, against the plain PyTorch module and torch.nn.LSTMCell.

    python benchmarks/cell.py [--device cuda] [--dtype float32] [--threads 1] [--json FILE]

A time is that of one call with a synchronisation after it; the figure is the median. The contenders
take turns of 20 calls, so that a busy machine is equally busy for each. TF32 is off. LSTMCell has
four gates to the cell's three. `--graph` takes Python out: 50 calls are captured in a CUDA graph,
and its replay is timed. `--tutorial` adds the tutorial's own CUDA extension, where its
package extension_cpp (the last version that holds LLTM) can be imported.
"""

import argparse
import json
import statistics

import torch
from timing import captured, measure

import lltm_decoupled
from lltm_decoupled import reference

TURN = 20
REPEATS = 50  # calls in a CUDA graph
SIZES = ((16, 32, 128), (64, 1024, 128), (64, 512, 512), (256, 1024, 1024))
SMALL_SIZES = tuple((b, i, h) for b in (1, 4, 16) for i, h in ((32, 64), (32, 128), (256, 256)))


class TutorialLLTM(reference.LLTM):
    """The tutorial's extension behind the same module."""

    @staticmethod
    def _cell(input, weights, bias, old_h, old_cell):
        from extension_cpp.ops import lltm

        return lltm(input, weights, bias.unsqueeze(0), old_h, old_cell)


def contenders(input_features, state_size, options):
    modules = {
        "lltm_decoupled": lltm_decoupled.LLTM,
        "plain": reference.LLTM,
        "LSTMCell": torch.nn.LSTMCell,
    }
    if options.tutorial:
        modules["tutorial"] = TutorialLLTM
    return {
        name: module(input_features, state_size, device=options.device, dtype=options.dtype)
        for name, module in modules.items()
    }


def forward(module, input, state):
    with torch.no_grad():
        module(input, state)


def forward_backward(module, input, state):
    wanted = (input, *state, *module.parameters())
    torch.autograd.grad(module(input, state), wanted, [tensor.detach() for tensor in state])


def benchmark(size, options):
    batch_size, input_features, state_size = size

    def draw(width):
        tensor = torch.randn(batch_size, width, device=options.device, dtype=options.dtype)
        return tensor.requires_grad_()

    input, state = draw(input_features), (draw(state_size), draw(state_size))
    modules = contenders(input_features, state_size, options)
    for run in (forward, forward_backward):
        passes = {n: (lambda m=m, r=run: r(m, input, state)) for n, m in modules.items()}
        if options.graph:
            passes = {name: captured(run, REPEATS) for name, run in passes.items()}
        times = measure(passes, options.device, options.turns, TURN)
        if options.graph:
            times = {name: [t / REPEATS for t in calls] for name, calls in times.items()}
        ours = statistics.median(times["lltm_decoupled"])
        for name, calls in times.items():
            median = statistics.median(calls)
            quartiles = statistics.quantiles(calls, n=4)
            yield {
                "size": size,
                "pass": run.__name__,
                "name": name,
                "us": median * 1e6,
                "spread_us": (quartiles[2] - quartiles[0]) * 1e6,
                "times_ours": median / ours,
            }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument(
        "--dtype", default="float32", choices=("float32", "float64", "float16", "bfloat16")
    )
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--turns", type=int, default=30)
    parser.add_argument("--small", action="store_true", help="batch 1 to 16, state 64 to 256")
    parser.add_argument("--tutorial", action="store_true")
    parser.add_argument("--graph", action="store_true", help="time the calls in a CUDA graph")
    parser.add_argument("--json", metavar="FILE")
    options = parser.parse_args()
    options.dtype = getattr(torch, options.dtype)
    torch.set_num_threads(options.threads)
    torch.backends.cuda.matmul.allow_tf32 = False

    card = torch.cuda.get_device_name() if options.device == "cuda" else "CPU, 1 thread"
    in_graph = " in a CUDA graph" if options.graph else ""
    print(f"{card}, torch {torch.__version__}, {options.dtype}; B, I, H; us per call" + in_graph)
    rows = []
    for size in SMALL_SIZES if options.small else SIZES:
        for row in benchmark(size, options):
            rows.append(row)
            print(
                "{size!s:18} {pass:17} {name:15} {us:9.1f} +-{spread_us:7.1f}  "
                "{times_ours:5.2f} x ours".format(**row)
            )
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump(rows, file, indent=1)


if __name__ == "__main__":
    main()

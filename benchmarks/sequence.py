"""Times a whole sequence against torch.nn.LSTM and a Python loop over the plain cell.

    python benchmarks/sequence.py [--device cuda] [--dtype float32] [--steps 512] [--json FILE]

A time is that of one call, from Python, with a synchronisation after it; the figure is the median,
divided by the steps. The contenders take turns. TF32 is off, but with `--tf32`. nn.LSTM has four
gates to LLTM's three: "per gate" counts that out. `--graph` captures our passes in a CUDA graph
besides.
"""

import argparse
import json
import statistics

import torch
from timing import captured, measure

import lltm_decoupled
from lltm_decoupled import reference

CPU_SIZES = ((64, 16, 32, 128), (128, 16, 512, 512), (64, 64, 512, 512), (128, 1, 256, 256))
GPU_SIZES = (  # of as many steps as are asked for
    (16, 128, 128),
    (62, 16, 168),
    (64, 256, 256),
    (16, 512, 512),
    (64, 512, 512),
    (16, 768, 768),
    (16, 1024, 1024),
    (64, 1024, 1024),
    (256, 1024, 1024),
)


class Ours(torch.nn.Module):
    def __init__(self, input_size, hidden_size, **factory):
        super().__init__()
        self.cell = lltm_decoupled.LLTM(input_size, hidden_size, **factory)

    def forward(self, input):
        state = input.new_zeros(input.shape[1], self.cell.state_size)
        parameters = self.cell.weights, self.cell.bias
        return torch.ops.lltm_decoupled.sequence(input, *parameters, state, state)[0]


class Loop(Ours):
    def forward(self, input):
        h = c = input.new_zeros(input.shape[1], self.cell.state_size)
        outputs = []
        for x in input:
            h, c = reference.lltm_cell(x, self.cell.weights, self.cell.bias, h, c)
            outputs.append(h)
        return torch.stack(outputs)


class LSTM(torch.nn.LSTM):
    def forward(self, input):
        return super().forward(input)[0]


def forward(module, input):
    with torch.no_grad():
        return module(input)


def forward_backward(module, input):
    output = module(input)
    torch.autograd.grad(output, (input, *module.parameters()), output.detach())


def benchmark(size, options):
    steps, batch_size, input_size, hidden_size = size
    factory = {"device": options.device, "dtype": options.dtype}
    input = torch.randn(steps, batch_size, input_size, **factory).requires_grad_()
    modules = {"lltm_decoupled": Ours, "nn.LSTM": LSTM}
    if not options.no_loop:
        modules["Python loop"] = Loop
    modules = {name: make(input_size, hidden_size, **factory) for name, make in modules.items()}
    for run in (forward, forward_backward):
        passes = {name: (lambda m=m, r=run: r(m, input)) for name, m in modules.items()}
        times = measure(passes, options.device, options.turns, options.calls)
        if options.graph:
            replay = captured(passes["lltm_decoupled"], 1)
            times.update(measure({"in a graph": replay}, options.device, options.turns, 4))
        medians = {name: statistics.median(calls) for name, calls in times.items()}
        for name, calls in times.items():
            quartiles = statistics.quantiles(calls, n=4)
            yield {
                "size": size,
                "pass": run.__name__,
                "name": name,
                "us_per_step": medians[name] / steps * 1e6,
                "spread_us": (quartiles[2] - quartiles[0]) / steps * 1e6,
                "times_ours": medians[name] / medians["lltm_decoupled"],
            }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument(
        "--dtype", default="float32", choices=("float32", "float64", "float16", "bfloat16")
    )
    parser.add_argument(
        "--size", type=int, nargs=4, action="append", metavar=("T", "B", "I", "H"), dest="sizes"
    )
    parser.add_argument("--steps", type=int, default=512, help="of the sizes for a GPU")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--calls", type=int, default=4, help="of a contender in a turn")
    parser.add_argument("--no-loop", action="store_true", help="without the slow Python loop")
    parser.add_argument("--graph", action="store_true")
    parser.add_argument("--tf32", action="store_true", help="in float32 products, for all")
    parser.add_argument("--json", metavar="FILE")
    options = parser.parse_args()
    options.dtype = getattr(torch, options.dtype)
    torch.set_num_threads(options.threads)
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = options.tf32

    on_gpu = options.device == "cuda"
    machine = torch.cuda.get_device_name() if on_gpu else f"CPU, {options.threads} thread(s)"
    dtype = f"{options.dtype} as TF32" if options.tf32 else options.dtype
    print(f"{machine}, torch {torch.__version__}, {dtype}; T, B, I, H; us per step")
    rows = []
    sizes = [(options.steps, *size) for size in GPU_SIZES] if on_gpu else CPU_SIZES
    for size in map(tuple, options.sizes or sizes):
        for row in benchmark(size, options):
            rows.append(row)
            per_gate = f"  {row['times_ours'] * 0.75:5.2f} per gate" * (row["name"] == "nn.LSTM")
            print(
                "{size!s:20} {pass:17} {name:15} {us_per_step:9.2f} +-{spread_us:7.2f}  "
                "{times_ours:5.2f} x ours".format(**row)
                + per_gate,
                flush=True,
            )
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump(rows, file, indent=1)


if __name__ == "__main__":
    main()

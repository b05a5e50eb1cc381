"""Measures a cell or a layer of one size against its contenders."""

import statistics

import torch

from . import timing
from .contenders import CONTENDERS

GRAPH_CALLS = {"cell": 50, "layer": 1}  # in one CUDA graph


def inference(module, inputs):
    with torch.no_grad():
        module(*inputs)


def forward(module, inputs):
    module(*inputs)


def forward_backward(module, inputs):
    outputs = module(*inputs)
    outputs = outputs if isinstance(outputs, tuple) else (outputs,)
    state = [tensor for pair in inputs[1:] for tensor in pair]
    wanted = (inputs[0], *state, *module.parameters())
    torch.autograd.grad(outputs, wanted, [output.detach() for output in outputs])


# without gradients; with what backward needs kept; with all gradients
PASSES = {"inference": inference, "forward": forward, "forward+backward": forward_backward}


def chosen(what, settings):
    """({name: contender}, {name: why it is left out}); ours comes first and always."""
    present, absent = {}, {}
    for name, contender in CONTENDERS[what].items():
        if name in settings.contenders or name.startswith("ours"):
            reason = contender.why_missing(settings.device)
            if reason is None:
                present[name] = contender
            elif name in settings.contenders:
                absent[name] = reason
    return present, absent


def benchmark(what, size, dtype, settings, contenders):
    """Yield a row, a dict of JSON values, for each pass and contender."""
    try:
        inputs = draw(what, size, dtype, settings)
        modules, unmade = make(contenders, size, dtype, settings.device)
        for pass_name in settings.passes:
            taken, errors = run_pass(what, pass_name, modules, inputs, contenders, settings)
            errors.update(unmade)
            rows = [
                {
                    "what": what,
                    "dtype": "TF32" if settings.tf32 else str(dtype).replace("torch.", ""),
                    "steps": settings.steps if what == "layer" else 1,
                    **dict(zip("BIH", size)),
                    "pass": pass_name,
                    "contender": name,
                    "gates": contenders[name].gates,
                    **summary(taken.get(name, []), settings.steps if what == "layer" else 1),
                    "error": errors.get(name),
                }
                for name in contenders
            ]
            add_ratios(rows, contenders)
            yield from rows
            timing.release(settings.device)
    finally:
        inputs = modules = None
        timing.release(settings.device)


def draw(what, size, dtype, settings):
    """The arguments of one call, on the device; drawn on the CPU, so that each gets the same."""
    batch_size, input_features, state_size = size
    generator = torch.Generator().manual_seed(0)

    def tensor(*shape):
        drawn = torch.randn(*shape, generator=generator)
        return drawn.to(settings.device, dtype).requires_grad_()

    if what == "layer":
        return (tensor(settings.steps, batch_size, input_features),)
    state = tensor(batch_size, state_size), tensor(batch_size, state_size)
    return tensor(batch_size, input_features), state


def make(contenders, size, dtype, device):
    """({name: module}, {name: why it could not be made})"""
    modules, errors = {}, {}
    for name, contender in contenders.items():
        try:
            modules[name] = contender.make(*size[1:]).to(device, dtype)
        except Exception as error:  # of any library
            errors[name] = timing.in_a_line(error)
    return modules, errors


def run_pass(what, pass_name, modules, inputs, contenders, settings):
    """({name: seconds of each call}, {name: error}); graphs are gone when it returns."""
    runs, errors = {}, {}
    for name, module in modules.items():
        repeats = 1

        def run(module=module):
            PASSES[pass_name](module, inputs)

        if contenders[name].graph:
            repeats = GRAPH_CALLS[what]
            try:
                run = timing.captured(run, repeats)
            except Exception as error:  # what cannot be captured says so in many ways
                errors[name] = timing.in_a_line(error)
                timing.release(settings.device)
                continue
        runs[name] = timing.timed(run, settings.device, repeats)
    taken, failed = timing.measure(runs, *settings.effort(what))
    return taken, {**errors, **failed}


def summary(seconds, steps):
    """Median and quartiles in microseconds a step; None where nothing was measured."""
    values = sorted(value / steps * 1e6 for value in seconds)
    if not values:
        return {"us": None, "us_low": None, "us_high": None, "calls": 0}
    if len(values) == 1:
        values *= 2
    low, median, high = statistics.quantiles(values, n=4, method="inclusive")
    return {"us": median, "us_low": low, "us_high": high, "calls": len(seconds)}


def add_ratios(rows, contenders):
    """How many times ours each takes, as it is and by gate: graphs beside ours in a graph."""
    median = {row["contender"]: row["us"] for row in rows}
    for row in rows:
        own = median.get("ours-graph" if contenders[row["contender"]].graph else "ours")
        ratio = row["us"] / own if row["us"] and own else None
        row["times_ours"] = ratio
        row["times_ours_per_gate"] = ratio and ratio * 3 / row["gates"]

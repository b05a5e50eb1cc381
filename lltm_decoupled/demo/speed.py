"""What the layer saves: a window's forward and backward pass, timed beside a loop over the cell."""

import statistics
import time

import torch
from torch import nn

import lltm_decoupled

ROUNDS = 5


class CellLoop(nn.Module):
    """LLTMSequence's call with its parameters, but one call of the cell for each character."""

    def __init__(self, layer):
        super().__init__()
        self.layer = layer

    def forward(self, input, state=None):
        h, c = state
        h, c, outputs = h[0], c[0], []
        for x in input:
            h, c = lltm_decoupled.lltm_cell(x, self.layer.weights_l0, self.layer.bias_l0, h, c)
            outputs.append(h)
        return torch.stack(outputs), (h, c)


def seconds_a_window(layer, characters):
    """Return the medians of (layer, Python loop over the cell), taking turns, at this size."""
    steps, batch = characters.shape
    weights = layer.weights_l0
    input = weights.new_zeros(steps, batch, layer.input_size).normal_().requires_grad_()
    state = weights.new_zeros(1, batch, layer.hidden_size)
    contenders = (layer, CellLoop(layer))
    times = ([], [])
    for _ in range(ROUNDS + 1):
        for contender, seconds in zip(contenders, times):
            _synchronize(weights)
            started = time.perf_counter()
            output, _ = contender(input, (state, state))
            torch.autograd.grad(output.sum(), (input, weights))
            _synchronize(weights)
            seconds.append(time.perf_counter() - started)
    return tuple(statistics.median(seconds[1:]) for seconds in times)


def _synchronize(tensor):
    if tensor.is_cuda:
        torch.cuda.synchronize(tensor.device)

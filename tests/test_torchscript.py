"""TorchScript: the modules are traced; torch.jit.script says so, and takes the functions."""

import warnings

import pytest
import torch
from helpers import draw
from sequence_helpers import draw_sequence
from test_misuse import by_class, make
from torch.nn.utils import rnn

from lltm_decoupled import LLTMSequence, lltm_cell, lltm_sequence, reference


@by_class
@pytest.mark.filterwarnings("ignore:.*torch.jit")
def test_script_names_the_ways_out(name):
    """Alone and inside of a model; torch.jit.trace takes them."""
    module, input = make(name)
    for model in (module, torch.nn.Sequential(torch.nn.Linear(3, 3), module)):
        with pytest.raises(RuntimeError, match="torch.jit.trace") as caught:
            torch.jit.script(model)
        cannot = f"torch.jit.script cannot compile {type(module).__name__}: "
        assert str(caught.value).startswith(cannot)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        traced = torch.jit.trace(module, (input,))
    assert torch.equal(traced(input)[0], module(input)[0])


LAYERS = (
    {},
    {"batch_first": True, "bias": False},
    {"bidirectional": True},
    {"num_layers": 2, "recompute": True},
)


@pytest.mark.filterwarnings("error::torch.jit.TracerWarning", "ignore:.*torch.jit")
@pytest.mark.parametrize("with_state", [False, True])
@pytest.mark.parametrize("options", LAYERS, ids=str)
def test_a_traced_layer_takes_other_sizes(options, with_state, tmp_path):
    layer = LLTMSequence(3, 4, **options)
    parts = layer.num_layers * (2 if layer.bidirectional else 1)

    def draw_inputs(steps, batch_size):
        sizes = (batch_size, steps) if layer.batch_first else (steps, batch_size)
        state = (torch.randn(parts, batch_size, 4), torch.randn(parts, batch_size, 4))
        return (torch.randn(*sizes, 3), *([state] if with_state else []))

    traced = torch.jit.trace(layer, draw_inputs(5, 2))
    path = str(tmp_path / "layer.pt")
    traced.save(path)
    for model in (traced, torch.jit.load(path)):
        for sizes in ((5, 2), (7, 2), (5, 3), (40, 1)):
            inputs = draw_inputs(*sizes)
            torch.testing.assert_close(model(*inputs), layer(*inputs))
        with pytest.raises(RuntimeError, match="lltm_decoupled: expected "):
            model(torch.randn(5, 2, 2), *inputs[1:])


class OfLengths(torch.nn.Module):
    """Padded rows and their lengths -> the padded output of a layer."""

    def __init__(self, layer, enforce_sorted):
        super().__init__()
        self.layer, self.enforce_sorted = layer, enforce_sorted

    def forward(self, input, lengths):
        packed = rnn.pack_padded_sequence(input, lengths, enforce_sorted=self.enforce_sorted)
        return rnn.pad_packed_sequence(self.layer(packed)[0])[0]


def traces_unsorting():
    """Old torch's own part of it keeps the example's size."""
    places = torch.tensor([2, 0, 1]), torch.tensor([1, 3, 0, 2])
    traced = torch.jit.trace(rnn.invert_permutation, places[:1])
    try:
        return torch.equal(traced(places[1]), rnn.invert_permutation(places[1]))
    except RuntimeError:
        return False


@pytest.mark.filterwarnings("ignore:.*torch.jit", "ignore::torch.jit.TracerWarning")
@pytest.mark.parametrize("enforce_sorted", [False, True])
def test_a_traced_layer_takes_other_lengths(enforce_sorted):
    if not enforce_sorted and not traces_unsorting():
        pytest.skip(f"torch {torch.__version__} cannot trace its own unsorting")
    module = OfLengths(LLTMSequence(3, 4, num_layers=2), enforce_sorted)
    example = torch.randn(6, 3, 3), torch.tensor([6, 4, 2])
    traced = torch.jit.trace(module, example, check_trace=False)
    for lengths in ([6, 3, 1, 1], [6, 2], [4, 4, 4]):
        inputs = torch.randn(max(lengths), len(lengths), 3), torch.tensor(lengths)
        torch.testing.assert_close(traced(*inputs), module(*inputs))


@pytest.mark.filterwarnings("ignore:.*torch.jit", "ignore::torch.jit.TracerWarning")
def test_a_trace_is_not_made_with_the_state_of_more_layers():
    layer, input, h0 = LLTMSequence(3, 4), torch.randn(5, 2, 3), torch.randn(1, 2, 4)
    with pytest.raises(RuntimeError, match="lltm_decoupled: expected c0 of shape"):
        torch.jit.trace(layer, (input, (h0, torch.cat([h0, h0]))))


def step(
    input: torch.Tensor,
    weights: torch.Tensor,
    bias: torch.Tensor,
    old_h: torch.Tensor,
    old_cell: torch.Tensor,
):
    return torch.ops.lltm_decoupled.cell(input, weights, bias, old_h, old_cell)


def steps(
    input: torch.Tensor,
    weights: torch.Tensor,
    bias: torch.Tensor,
    h0: torch.Tensor,
    c0: torch.Tensor,
):
    return torch.ops.lltm_decoupled.sequence(input, weights, bias, h0, c0, reverse=True)


@pytest.mark.filterwarnings("ignore:.*torch.jit")
def test_the_functions_that_can_be_scripted(float64_target):
    """As the message of a module says: the formula, and an operator inside of a function."""
    inputs = draw(float64_target)
    for function in (reference.lltm_cell, step):
        new_h, _ = torch.jit.script(function)(*inputs)
        torch.testing.assert_close(new_h, lltm_cell(*inputs)[0])
    inputs = draw_sequence(float64_target)
    output = torch.jit.script(steps)(*inputs)[0]
    torch.testing.assert_close(output, lltm_sequence(*inputs, reverse=True)[0])

"""Dropout between layers, and zoneout: in training only, and by PyTorch's own generator."""

import warnings

import pytest
import torch
import torch.nn.functional as F
from helpers import all_equal, assert_close, exact
from layer_helpers import draw_layer_call, exact_parameters, flat, make, weigh
from torch import nn
from torch.nn.utils.rnn import pack_sequence

from lltm_decoupled import LLTMSequence, reference


def seeded(module, *call, seed=4):
    torch.manual_seed(seed)
    return flat(module(*call))


def by_hand(module, parameters, masks_like, input, state, batch_sizes=None, seed=4):
    """The layer with its draws written out: zoneout of h, of the cell, by direction; dropout."""
    torch.manual_seed(seed)
    finals, index = [], 0
    for layer in range(module.num_layers):
        if layer > 0:
            ones = torch.ones(input.shape, dtype=masks_like.dtype, device=masks_like.device)
            input = input * F.dropout(ones, module.dropout).cpu().double()
        sides = []
        for end in ("", "_reverse") if module.bidirectional else ("",):
            shape = input.shape[:-1] + (module.hidden_size,)
            masks = [
                (torch.rand(shape, device=masks_like.device) < p).cpu() if p else None
                for p in module.zoneout
            ]
            side, *last = reference.lltm_sequence(
                input,
                parameters[f"weights_l{layer}{end}"],
                parameters[f"bias_l{layer}{end}"],
                state[0][index],
                state[1][index],
                batch_sizes=batch_sizes,
                reverse=bool(end),
                zoneout_h=masks[0],
                zoneout_c=masks[1],
            )
            sides.append(side)
            finals.append(last)
            index += 1
        input = torch.cat(sides, -1)
    return [input, *(torch.stack(parts) for parts in zip(*finals))]


WAYS = [
    {"num_layers": 3, "dropout": 0.4},
    {"num_layers": 2, "dropout": 0.4, "bidirectional": True},
    {"zoneout": (0.3, 0.0)},
    {"zoneout": (0.0, 0.3), "recompute": True},
    {"zoneout": (0.1, 0.5), "bidirectional": True, "num_layers": 2, "dropout": 0.2},
]


@pytest.mark.parametrize("way", WAYS, ids=str)
@pytest.mark.parametrize("packed", [False, True])
def test_values_and_gradients(packed, way, target):
    """With the masks that the seed gives; backward uses those of the same step."""
    module = make(target, **way)
    input, state = draw_layer_call(module)
    batch_sizes = None
    if packed:
        rows = pack_sequence([input[:n, i] for i, n in enumerate((6, 5, 3, 3, 1))])
        actual = seeded(module, rows, state)
        input, batch_sizes = rows.data, rows.batch_sizes
    else:
        actual = seeded(module, input, state)
    parameters = exact_parameters(module)
    exact_call = exact([input])[0], exact(state)
    expected = by_hand(module, parameters, input, *exact_call, batch_sizes)
    for tensor, value in zip(actual, expected):
        assert_close(tensor, value, target, terms=6)
    gradients = torch.autograd.grad(weigh(actual), list(module.parameters()))
    values = torch.autograd.grad(weigh(expected), list(parameters.values()))
    for name, gradient, value in zip(parameters, gradients, values):
        # 30 rows, of up to three layers that each scale by 1 / (1 - p)
        assert_close(gradient, value, target, name, terms=1000)


@pytest.mark.parametrize("way", WAYS, ids=str)
def test_training_is_random_and_evaluation_is_not(way, target):
    module = make(target, **way)
    call = draw_layer_call(module)
    first = seeded(module, *call)
    assert all_equal(seeded(module, *call), first)
    assert not torch.equal(seeded(module, *call, seed=5)[0], first[0])
    module.eval()
    plain = make(target, **{k: v for k, v in way.items() if k not in ("dropout", "zoneout")})
    plain.load_state_dict(module.state_dict())
    before = torch.random.get_rng_state()
    assert all_equal(flat(module(*call)), flat(plain(*call)))
    assert torch.equal(torch.random.get_rng_state(), before), "evaluation drew random numbers"
    module.train()
    assert all_equal(seeded(module, *call), first)


def test_probability_zero_draws_nothing(target):
    module = make(target, 3, 4, 2)
    call = draw_layer_call(module)
    before = torch.random.get_rng_state()
    on_gpu = target.device != "cpu"
    gpu_before = torch.cuda.get_rng_state(target.device) if on_gpu else None
    module(*call)
    assert torch.equal(torch.random.get_rng_state(), before)
    assert not on_gpu or torch.equal(torch.cuda.get_rng_state(target.device), gpu_before)


def test_certain_zoneout_keeps_the_first_state(target):
    module = make(target, zoneout=(1.0, 1))
    input, (h0, c0) = draw_layer_call(module)
    output, (h_n, c_n) = module(input, (h0, c0))
    assert all_equal((h_n, c_n), (h0, c0))
    assert torch.equal(output, h0[0].expand_as(output))


def test_zoneout_keeps_as_many_units_as_it_says(target):
    module = make(target, 3, 64, zoneout=(0.25, 0.0))
    input, (h0, c0) = draw_layer_call(module, steps=1, batch_size=100)
    output, _ = module(input, (h0, c0))
    kept = (output[0] == h0[0]).double().mean().item()
    assert kept == pytest.approx(0.25, abs=0.02)  # 6400 draws: a deviation of 0.005


def test_dropout_zeroes_and_scales_as_lstm_does(target):
    """A second layer that would pass its input on sees zeros, and values over 1 - p."""
    module = make(target, 3, 64, 2, dropout=0.25)
    seen = []

    def watch(input, *others, **options):
        seen.append(input)
        return LLTMSequence._sequence(input, *others, **options)

    module._sequence = watch
    input, state = draw_layer_call(module)
    module(input, state)
    dropped = seen[1]
    whole = make(target, 3, 64)
    whole.load_state_dict({k: v for k, v in module.state_dict().items() if "l0" in k})
    output = whole(input, tuple(part[:1] for part in state))[0]
    zeros = dropped == 0
    assert zeros.double().mean().item() == pytest.approx(0.25, abs=0.05)
    close = {"rtol": 10 * target.rtol, "atol": 10 * target.atol}
    torch.testing.assert_close(dropped[~zeros], (output / 0.75)[~zeros], **close)


def test_dropout_of_everything(target):
    """With p = 1 the second layer sees nothing, as in nn.LSTM: still no NaN."""
    module = make(target, 3, 4, 2, dropout=1.0)
    input, state = draw_layer_call(module)
    first = flat(module(input, state))[0]
    assert torch.isfinite(first).all()
    assert torch.equal(flat(module(-input, state))[0], first)


def test_dropout_with_one_layer_warns_as_lstm_does():
    for layer in (nn.LSTM, LLTMSequence):
        with pytest.warns(UserWarning, match="dropout.*num_layers=1") as caught:
            layer(3, 4, dropout=0.5)
        assert len(caught) == 1
    assert caught[0].filename == __file__  # where it was made, not where it warns
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        LLTMSequence(3, 4, 2, dropout=0.5)
        LLTMSequence(3, 4, zoneout=(0.5, 0.5))


def test_checkpointing_draws_the_same_again(target):
    module = make(target, 3, 4, 2, dropout=0.3, zoneout=(0.2, 0.2))
    input, state = draw_layer_call(module)
    results = []
    for use_reentrant in (None, True, False):
        leaf = input.clone().requires_grad_()
        torch.manual_seed(6)
        if use_reentrant is None:
            output, _ = module(leaf, state)
        else:
            output, _ = torch.utils.checkpoint.checkpoint(
                module, leaf, state, use_reentrant=use_reentrant
            )
        module.zero_grad()
        weigh([output]).backward()
        results.append([output, leaf.grad, *(p.grad.clone() for p in module.parameters())])
    for other in results[1:]:
        assert all_equal(other, results[0])

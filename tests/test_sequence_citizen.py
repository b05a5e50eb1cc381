"""LLTMSequence as a module of torch.nn: what users do to nn.LSTM, they do to it."""

import pytest
import torch
from conftest import why_unsupported
from helpers import all_equal, assert_close, exact
from layer_helpers import draw_layer_call, flat, make, same_results
from torch import nn
from torch.nn.parallel import DataParallel
from torch.nn.utils import prune

from lltm_decoupled import LLTMSequence, reference

BOTH_WAYS = {"num_layers": 2, "bidirectional": True}


def test_tied_weights_add_their_gradients(target):
    module, apart = (make(target, 3, 4, bidirectional=True) for _ in range(2))
    apart.load_state_dict(dict(module.state_dict(), weights_l0_reverse=module.weights_l0))
    module.weights_l0_reverse = module.weights_l0
    call = draw_layer_call(module)
    for layer in (module, apart):
        layer(*call)[0].sum().backward()
    expected = apart.weights_l0.grad + apart.weights_l0_reverse.grad
    # two gradients, added in one order or the other
    torch.testing.assert_close(
        module.weights_l0.grad, expected, rtol=target.rtol, atol=10 * target.atol
    )


REPARAMETRIZATIONS = {
    "weight_norm": lambda module: nn.utils.weight_norm(module, "weights_l1_reverse"),
    "parametrizations.weight_norm": lambda module: nn.utils.parametrizations.weight_norm(
        module, "weights_l1_reverse"
    ),
    "spectral_norm": lambda module: nn.utils.spectral_norm(module, "weights_l1_reverse"),
    "prune": lambda module: prune.l1_unstructured(module, "weights_l1_reverse", amount=0.3),
    "prune of a bias": lambda module: prune.l1_unstructured(module, "bias_l0", amount=0.3),
}


# The old weight_norm says that the one in parametrizations replaces it.
@pytest.mark.filterwarnings("ignore:.*weight_norm.*")
@pytest.mark.parametrize("name", REPARAMETRIZATIONS)
def test_reparametrized_weights_train(name, target):
    """The weights are read at each call: steps through the new parameters equal the reference's."""
    if name.startswith("param") and not hasattr(nn.utils.parametrizations, "weight_norm"):
        pytest.skip(f"torch {torch.__version__} has no parametrizations.weight_norm")
    module = make(target, 3, 4, **BOTH_WAYS)
    twin = reference.LLTMSequence(3, 4, device=target.device, dtype=target.dtype, **BOTH_WAYS)
    twin.load_state_dict(module.state_dict())
    call = draw_layer_call(module)
    gradients = []
    for model in (module, twin):
        torch.manual_seed(1)  # spectral_norm draws a start for its power iteration
        before = {key for key, _ in model.named_parameters()}
        REPARAMETRIZATIONS[name](model)
        parameters = dict(model.named_parameters())
        assert len(before - parameters.keys()) == 1
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for _ in range(2):
            optimizer.zero_grad()
            model(*call)[0].square().mean().backward()
            optimizer.step()
        gradients.append({key: p.grad for key, p in parameters.items()})
        assert torch.isfinite(model(*call)[0]).all()
    for key, expected in gradients[1].items():
        # both in the target's dtype, of 30 rows, through a norm or a power iteration
        assert_close(gradients[0][key], expected, target, key, terms=100)


def test_skip_init_and_devices(target):
    if not hasattr(nn.utils, "skip_init"):
        pytest.skip(f"torch {torch.__version__} has no skip_init")
    expected = make(target, 3, 4, 2)
    module = nn.utils.skip_init(LLTMSequence, 3, 4, 2, device=target.device, dtype=target.dtype)
    module.load_state_dict(expected.state_dict())
    call = draw_layer_call(module)
    assert same_results(module, expected, call)
    if not hasattr(torch.device(target.device), "__enter__"):
        pytest.skip(f"in torch {torch.__version__} a device is no context")
    with torch.device("meta"):
        module = LLTMSequence(3, 4, 2, dtype=target.dtype)
    output, state = module(call[0].to("meta"))
    assert output.shape == (6, 5, 4) and state[0].device.type == "meta"
    module = module.to_empty(device=target.device)
    module.load_state_dict(expected.state_dict())
    assert same_results(module, expected, call)


def test_half_and_back(target):
    module = make(target, 3, 4, 2)
    input, state = draw_layer_call(module)
    for change, dtype in ((module.half, torch.float16), (module.bfloat16, torch.bfloat16)):
        change()
        if target.device != "cpu" or not why_unsupported(dtype):
            assert {t.dtype for t in flat(module(input.to(dtype)))} == {dtype}
    module.to(target.dtype)
    assert torch.isfinite(module(input, state)[0]).all()


def test_functional_call(target):
    func = getattr(torch, "func", None) or pytest.importorskip("torch.nn.utils.stateless")
    module, other = (make(target, 3, 4, **BOTH_WAYS) for _ in range(2))
    call = draw_layer_call(module)
    actual = func.functional_call(module, dict(other.named_parameters()), call)
    assert all_equal(flat(actual), flat(other(*call)))


def saved_numbers(module, call):
    """How many numbers autograd keeps that are neither parameters nor the call's tensors."""
    saved = {}

    def pack(tensor):
        saved[tensor.data_ptr()] = tensor.numel()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        output, state = module(*call)
    others = {t.data_ptr() for t in (call[0], *call[1], *module.parameters(), output, *state)}
    return sum(count for address, count in saved.items() if address not in others)


def test_what_is_kept_for_backward(target):
    """Nothing without a gradient; with recompute less than with every step's activations."""
    module, again = (make(target, 3, 4, 2, recompute=flag) for flag in (False, True))
    call = draw_layer_call(module, steps=64, batch_size=2)
    per_step = 2 * 4
    assert saved_numbers(module, call) >= 2 * 64 * 4 * per_step  # in both layers
    # the first layer's output, four cells, the states of both layers, and again in torch 1.11,
    # whose stack keeps what it is given
    assert saved_numbers(again, call) <= (64 + 4 + 4 + 4) * per_step
    with torch.no_grad():
        assert saved_numbers(module, call) == 0
        assert not any(t.requires_grad for t in flat(module(*call)))


def test_flatten_parameters_does_nothing(target):
    module = make(target, 3, 4, 2)
    before = [(p.data_ptr(), p._version) for p in module.parameters()]
    assert module.flatten_parameters() is None
    assert [(p.data_ptr(), p._version) for p in module.parameters()] == before


def test_repr():
    assert repr(LLTMSequence(3, 4)) == "LLTMSequence(3, 4)"
    options = {"num_layers": 2, "bias": False, "batch_first": True, "dropout": 0.5}
    options.update(bidirectional=True, zoneout=(0.1, 0.0), recompute=True)
    said = ", ".join(f"{name}={value}" for name, value in options.items())
    assert repr(LLTMSequence(3, 4, **options)) == f"LLTMSequence(3, 4, {said})"
    assert repr(nn.LSTM(3, 4, 2, batch_first=True)).replace("LSTM", "LLTMSequence") == repr(
        LLTMSequence(3, 4, 2, batch_first=True)
    )


def test_training_equals_the_reference_step_by_step(float64_target):
    module = make(float64_target, 3, 4, **BOTH_WAYS)
    twin = reference.LLTMSequence(3, 4, dtype=torch.float64, **BOTH_WAYS)
    twin.load_state_dict(dict(zip(module.state_dict(), exact(module.state_dict().values()))))
    optimizers = [torch.optim.Adam(m.parameters(), lr=1e-2) for m in (module, twin)]
    for _ in range(5):
        input, state = draw_layer_call(module)
        calls = ((input, state), (exact([input])[0], tuple(exact(state))))
        for model, optimizer, call in zip((module, twin), optimizers, calls):
            optimizer.zero_grad()
            model(*call)[0].square().mean().backward()
            optimizer.step()
    for parameter, value in zip(module.parameters(), twin.parameters()):
        # Adam divides by the root of the squared gradient: roundings of it become a part of lr
        torch.testing.assert_close(parameter.detach().cpu(), value.detach(), rtol=1e-7, atol=1e-9)


class FirstOutput(torch.nn.Module):
    """DataParallel gathers by the first dimension: in h_n, as in nn.LSTM, not the batch's."""

    def __init__(self, layer):
        super().__init__()
        self.layer = layer

    def forward(self, input):
        return self.layer(input)[0]


@pytest.mark.parametrize("batch_size", [4, 5, 1])
def test_data_parallel(batch_size, second_gpu_target):
    """Replicas on two GPUs: what one GPU gives. Batch first, for it splits the first dimension."""
    target = second_gpu_target._replace(device="cuda:0")
    module = FirstOutput(make(target, 3, 4, batch_first=True))
    input = draw_layer_call(module.layer, batch_size, 6)[0]
    results = []
    for model in (DataParallel(module, device_ids=[0, 1]), module):
        module.zero_grad()
        output = model(input)
        output.sum().backward()
        results.append([output, *(p.grad.clone() for p in module.parameters())])
    for actual, expected in zip(*results):
        torch.testing.assert_close(actual, expected, rtol=10 * target.rtol, atol=10 * target.atol)

"""How a module may be called and made, as users of nn.LSTMCell and of torch.nn know it."""

import copy

import numpy
import pytest
import torch
from conftest import why_unsupported
from helpers import (
    all_equal,
    assert_close,
    assert_same_results,
    draw,
    draw_grads,
    evaluate,
    exact,
    leaves,
    module_call,
)
from torch import nn
from torch.nn.utils import prune

from lltm_decoupled import LLTM, reference


def make(target, **options):
    return LLTM(3, 4, device=target.device, dtype=target.dtype, **options)


def test_unbatched_input_and_state(target):
    """As nn.LSTMCell takes it: (I), (H), (H) -> (H), (H), the row of a batch of one."""
    inputs = draw(target, batch_size=1)
    grads = draw_grads(inputs)

    def unbatched(input, weights, bias, old_h, old_cell):
        outputs = module_call(input[0], weights, bias, old_h[0], old_cell[0])
        assert [output.shape for output in outputs] == [(4,), (4,)]
        return tuple(output.unsqueeze(0) for output in outputs)

    actual = evaluate(unbatched, inputs, grads)
    expected = evaluate(reference.lltm_cell, exact(inputs), exact(grads))
    assert_same_results(actual, expected, target, batch_size=1)


def test_unbatched_input_without_state(target):
    module, input = make(target), draw(target)[0]
    assert all_equal(module(input[2]), [output[0] for output in module(input[2:3])])
    lstm = nn.LSTMCell(3, 4, device=target.device, dtype=target.dtype)
    assert [t.shape for t in module(input[2])] == [t.shape for t in lstm(input[2])]


@pytest.mark.parametrize("module_class", [LLTM, reference.LLTM], ids=["LLTM", "reference"])
def test_mixed_ranks_are_one_clear_error(module_class, target):
    module = module_class(3, 4, device=target.device, dtype=target.dtype)
    input, _, _, old_h, old_cell = draw(target)
    for call in (
        (input[0], (old_h, old_cell)),
        (input, (old_h[0], old_cell[0])),
        (input[0], (old_h[0], old_cell)),
        (input[0], (old_h, old_cell[0])),
        (input, (old_h, old_cell[0])),
    ):
        with pytest.raises(RuntimeError, match="input, h and cell") as caught:
            module(*call)
        for tensor in (call[0], *call[1]):
            assert str(tuple(tensor.shape)) in str(caught.value)
    assert module(input, (old_h, old_cell))[0].shape == (5, 4)


def test_unbatched_results_may_be_edited(target):
    """They are the only view of their memory."""
    module, input = make(target), draw(target)[0]
    new_h, new_cell = module(input[0])
    expected = new_cell.detach().clone()
    new_h.detach().zero_()
    assert torch.equal(new_cell, expected)


def test_a_state_may_be_a_list(target):
    module, (input, _, _, *state) = make(target), draw(target)
    assert all_equal(module(input, state), module(input, tuple(state)))


@pytest.mark.parametrize("bias", [True, False])
def test_skip_init(bias, target):
    if not hasattr(nn.utils, "skip_init"):
        pytest.skip(f"torch {torch.__version__} has no skip_init")
    module = nn.utils.skip_init(LLTM, 3, 4, bias, device=target.device, dtype=target.dtype)
    expected = make(target, bias=bias)
    module.load_state_dict(expected.state_dict())
    input, _, _, *state = draw(target)
    assert all_equal(module(input, state), expected(input, state))


def test_device_context_and_default_dtype(target):
    """Factory arguments win over both; without them both count."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(target.dtype)
    try:
        assert {p.dtype for p in LLTM(3, 4).parameters()} == {target.dtype}
        assert LLTM(3, 4, dtype=torch.float32).weights.dtype == torch.float32
    finally:
        torch.set_default_dtype(before)
    if not hasattr(torch.device(target.device), "__enter__"):
        pytest.skip(f"in torch {torch.__version__} a device is no context")
    with torch.device(target.device):
        assert {p.device for p in LLTM(3, 4).parameters()} == {torch.device(target.device)}
        assert LLTM(3, 4, device="meta").bias.device.type == "meta"
    with torch.device("meta"):
        module = LLTM(3, 4, dtype=target.dtype)
    module = module.to_empty(device=target.device)
    module.reset_parameters()
    assert torch.isfinite(module(draw(target)[0])[0]).all()


def test_sizes_may_be_any_kind_of_integer():
    module = LLTM(numpy.int64(3), numpy.int32(4))
    assert (type(module.input_features), type(module.state_size)) == (int, int)
    assert module.weights.shape == (12, 7)


def test_extra_repr():
    assert repr(LLTM(3, 4)) == "LLTM(3, 4)"
    assert repr(LLTM(3, 4, bias=False)) == "LLTM(3, 4, bias=False)"


REPARAMETRIZATIONS = {
    "weight_norm": lambda module: nn.utils.weight_norm(module, "weights"),
    "parametrizations.weight_norm": lambda module: nn.utils.parametrizations.weight_norm(
        module, "weights"
    ),
    "spectral_norm": lambda module: nn.utils.spectral_norm(module, "weights"),
    "parametrizations.spectral_norm": lambda module: nn.utils.parametrizations.spectral_norm(
        module, "weights"
    ),
    "orthogonal": lambda module: nn.utils.parametrizations.orthogonal(module, "weights"),
    "prune": lambda module: prune.l1_unstructured(module, "weights", amount=0.3),
}


# The old weight_norm says that the one in parametrizations replaces it.
@pytest.mark.filterwarnings("ignore:.*weight_norm.*:FutureWarning")
@pytest.mark.filterwarnings("ignore:.*weight_norm.*:UserWarning")
@pytest.mark.parametrize("name", REPARAMETRIZATIONS)
def test_reparametrized_weights_train(name, target):
    """The weights are read at each call: a step through the new parameters equals the reference."""
    if name == "orthogonal" and target.dtype in (torch.float16, torch.bfloat16):
        pytest.skip("torch has no matrix exponential of half types")
    if name == "parametrizations.weight_norm" and not hasattr(
        nn.utils.parametrizations, "weight_norm"
    ):
        pytest.skip(f"torch {torch.__version__} has no parametrizations.weight_norm")
    module = make(target)
    twin = reference.LLTM(3, 4, device=target.device, dtype=target.dtype)
    twin.load_state_dict(module.state_dict())
    gradients = []
    input, _, _, *state = draw(target)
    for model in (module, twin):
        torch.manual_seed(1)  # spectral_norm draws a start for its power iteration
        REPARAMETRIZATIONS[name](model)
        parameters = dict(model.named_parameters())
        assert "weights" not in parameters and len(parameters) >= 2
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for _ in range(2):
            optimizer.zero_grad()
            model(input, state)[0].square().sum().backward()
            optimizer.step()
        gradients.append({key: p.grad for key, p in parameters.items()})
    for key, expected in gradients[1].items():
        # both run in the target's dtype, through a norm or a power iteration: ten cells' roundings
        assert_close(gradients[0][key], expected, target, key, terms=100)


def test_half_and_back(target):
    """half(), bfloat16() and to() change the parameters, and the cell follows."""
    module = make(target)
    input = draw(target)[0]
    for change, dtype in ((module.half, torch.float16), (module.bfloat16, torch.bfloat16)):
        change()
        if target.device != "cpu" or not why_unsupported(dtype):
            assert {t.dtype for t in module(input.to(dtype))} == {dtype}
    module.to(target.dtype)
    assert torch.isfinite(module(input)[0]).all()


def test_shared_module_copies_keep_their_ties(target):
    """deepcopy of a model in which two cells share their parameters ties the copies too."""
    first, second = make(target), make(target)
    second.weights = first.weights
    model = copy.deepcopy(nn.ModuleList([first, second]))
    assert model[0].weights is model[1].weights and model[0].weights is not first.weights
    input, _, _, *state = leaves(draw(target))
    model[0](input, model[1](input, state))[0].sum().backward()
    assert model[0].weights.grad.abs().sum() > 0 and first.weights.grad is None


@pytest.mark.parametrize("module", [LLTM, reference.LLTM])
def test_a_cells_state_is_named_as_the_module_names_it(module):
    cell = module(3, 4)
    for h, c, name in (((1, 4), (5, 4), "h"), ((5, 4), (5, 3), "cell"), ((5, 4), (2, 4), "cell")):
        with pytest.raises(RuntimeError, match=rf"expected {name} of shape .* = \(5, 4\), got \("):
            cell(torch.ones(5, 3), (torch.ones(h), torch.ones(c)))
    with pytest.raises(RuntimeError, match=r"input to have 1 or 2 dimensions .* \(2, 5, 3\)"):
        cell(torch.ones(2, 5, 3))

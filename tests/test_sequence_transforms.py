"""Sequences under torch.func, in forward mode and under autocast."""

import warnings

import pytest
import torch
from helpers import all_equal, assert_close, exact, leaves
from layer_helpers import draw_layer_call, exact_parameters, flat, loop_of_cells, make
from sequence_helpers import INPUTS, LOSSES, draw_masks, draw_sequence, evaluate, pack, ragged
from test_autocast import Target32, autocast, device, narrow  # noqa: F401  (fixtures)
from test_transforms import needs_func, sample_of, stacked
from torch.autograd import forward_ad

from lltm_decoupled import LLTMSequence, lltm_sequence, reference

# torch itself calls what it has deprecated for forward mode.
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning:torch.*")
STATES, WEIGHTS, ALL = (1, None, None, 0, 0), (None, 0, 0, None, None), (0, 0, 0, 0, 0)
WAYS = ["plain", "reverse", "packed", "zoneout"]


def options_of(way, inputs):
    """(inputs, keyword arguments of both functions) for a way to run a sequence."""
    options = {"reverse": way == "reverse"}
    if way == "packed":
        options["batch_sizes"] = ragged(*inputs[0].shape[:2])
        inputs = pack(inputs, options["batch_sizes"])
    if way == "zoneout":
        options.update(draw_masks(inputs))
    return inputs, options


def on_cpu(options):
    return {n: o.cpu() if isinstance(o, torch.Tensor) else o for n, o in options.items()}


@needs_func
@pytest.mark.parametrize("way", WAYS)
def test_func_grad(way, target):
    inputs, options = options_of(way, draw_sequence(target))

    def loss(*tensors):
        return LOSSES["all"](lltm_sequence(*tensors, **options))

    actual = torch.func.grad(loss, argnums=tuple(range(5)))(*inputs)
    expected = evaluate(reference.lltm_sequence, exact(inputs), **on_cpu(options))
    for name, tensor in zip(INPUTS, actual):
        assert_close(tensor, expected["d_" + name], target, name, terms=80)


@needs_func
@pytest.mark.parametrize("dims", [STATES, WEIGHTS, ALL], ids=str)
def test_vmap(dims, target):
    """Three samples at once equal a loop over them, in every way to run a sequence."""
    for way in WAYS:
        samples = [draw_sequence(target) for _ in range(3)]
        options = options_of(way, samples[0])[1]
        samples = [options_of(way, sample)[0] for sample in samples]
        inputs = stacked(samples, dims)

        def run(*tensors, options=options):
            return lltm_sequence(*tensors, **options)

        actual = torch.func.vmap(run, in_dims=dims)(*inputs)
        for number in range(3):
            one = exact(sample_of(inputs, dims, number))
            for output, value in zip(actual, reference.lltm_sequence(*one, **on_cpu(options))):
                assert_close(output[number], value, target, f"{way}, sample {number}", terms=4)


@needs_func
def test_per_sample_gradients_of_the_layer(target):
    """vmap(grad(functional_call)): what one row asks of the parameters, in both directions."""
    module = make(target, 3, 4, 2, bidirectional=True)
    parameters = {name: p.detach() for name, p in module.named_parameters()}
    input, state = draw_layer_call(module, steps=4, batch_size=3)

    def loss(parameters, *sample):  # a row has no batch dimension
        call = (sample[0], sample[1:])
        output, (h_n, c_n) = torch.func.functional_call(module, parameters, call)
        return (output.sum() * h_n.sum()) + c_n.square().sum()

    actual = torch.func.vmap(torch.func.grad(loss), in_dims=(None, 1, 1, 1))(
        parameters, input, *state
    )
    for row in range(3):
        values = exact_parameters(module)
        one = exact([t[:, row : row + 1] for t in (input, *state)])
        rows, h_n, c_n = loop_of_cells(module, values, one[0], one[1:])
        total = (rows[0].sum() * h_n.sum()) + c_n.square().sum()
        expected = torch.autograd.grad(total, list(values.values()))
        for name, value in zip(values, expected):
            # a product of two sums of up to 32 values
            assert_close(actual[name][row], value, target, f"{name} of {row}", terms=1000)


@needs_func
def test_random_layers_under_vmap(target):
    module = make(target, 3, 4, 2, dropout=0.3, zoneout=(0.3, 0.3))
    input, _ = draw_layer_call(module)
    same = torch.stack([input, input])
    for randomness in ("different", "same"):
        run = torch.func.vmap(lambda x: module(x)[0], randomness=randomness)
        outputs = run(same)
        # not equal: a product's bits may depend on the row
        alike = torch.allclose(outputs[0], outputs[1], rtol=target.rtol, atol=target.atol)
        assert alike == (randomness == "same")


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("dual", range(5), ids=INPUTS)
def test_forward_mode(dual, way, target):
    """Dual numbers: the tangents are the reference's."""
    inputs, options = options_of(way, draw_sequence(target))
    tangent = torch.randn(inputs[dual].shape, dtype=torch.float64)
    results = []
    for function, values, more in (
        (lltm_sequence, inputs, options),
        (reference.lltm_sequence, exact(inputs), on_cpu(options)),
    ):
        with forward_ad.dual_level():
            values = list(values)
            values[dual] = forward_ad.make_dual(values[dual], tangent.to(values[dual]))
            pairs = [forward_ad.unpack_dual(output) for output in function(*values, **more)]
            results.append([t for pair in pairs for t in pair])
    for actual, expected in zip(*results):
        assert actual is not None, "the tangent was dropped without an error"
        assert_close(actual, expected, target, terms=16)


@needs_func
def test_jvp_and_jacobians(float64_target):
    inputs, options = options_of("reverse", draw_sequence(float64_target, batch_size=2))
    tangents = tuple(torch.randn_like(t) for t in inputs)

    def run(*tensors):
        return lltm_sequence(*tensors, **options)

    def value(*tensors):
        return reference.lltm_sequence(*tensors, **options)

    actual = torch.func.jvp(run, tuple(inputs), tangents)
    expected = torch.func.jvp(value, tuple(exact(inputs)), tuple(exact(tangents)))
    for tensor, other in zip(sum(actual, ()), sum(expected, ())):
        assert_close(tensor, other, float64_target, terms=16)
    for transform in (torch.func.jacrev, torch.func.jacfwd):
        pairs = zip(transform(run, 3)(*inputs), torch.func.jacrev(value, 3)(*exact(inputs)))
        for tensor, other in pairs:
            assert_close(tensor, other, float64_target, terms=4)


def test_batches_of_gradients(target):
    """autograd.grad(is_grads_batched=True) equals one call for each."""
    inputs = leaves(draw_sequence(target))
    outputs = lltm_sequence(*inputs)
    grads = tuple(torch.randn(3, *o.shape, dtype=torch.float64).to(o) for o in outputs)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a loop over the kernel, of which torch warns
        batch = torch.autograd.grad(
            outputs, inputs, grads, is_grads_batched=True, retain_graph=True
        )
    for number in range(3):
        one = [g[number] for g in grads]
        expected = torch.autograd.grad(outputs, inputs, one, retain_graph=True)
        for name, tensor, value in zip(INPUTS, batch, expected):
            assert_close(tensor[number], value, target, "d_" + name, terms=80)


@needs_func
def test_transforms_leave_plain_calls_alone(target):
    inputs = draw_sequence(target)
    before = lltm_sequence(*inputs)
    torch.func.vmap(lltm_sequence, in_dims=STATES)(*stacked([inputs, inputs], STATES))
    assert all_equal(lltm_sequence(*inputs), before)


def test_autocast_dtypes_values_and_gradients(device, narrow):  # noqa: F811
    """As the reference in float64, to the narrow type's precision; gradients in float32."""
    tolerance = Target32(device)
    tolerance.rtol = tolerance.atol = 2e-2 if narrow == torch.float16 else 1e-1
    for way in WAYS:
        inputs, options = options_of(way, draw_sequence(Target32(device)))
        with autocast(device, narrow):
            outputs = lltm_sequence(*leaves(inputs), **options)
            assert {output.dtype for output in outputs} == {narrow}
            tensors = leaves(inputs)
            loss = LOSSES["all"]([o.float() for o in lltm_sequence(*tensors, **options)])
        gradients = torch.autograd.grad(loss, tensors)
        expected = evaluate(reference.lltm_sequence, exact(inputs), **on_cpu(options))
        for name, output in zip(("output", "h_n", "c_n"), outputs):
            assert_close(output, expected[name], tolerance, name)
        for name, gradient in zip(INPUTS, gradients):
            assert gradient.dtype == torch.float32
            assert_close(gradient, expected["d_" + name], tolerance, name, terms=20)


def test_autocast_of_the_layer(device, narrow):  # noqa: F811
    """After a linear layer, in a network that trains; the dtypes are those of nn.LSTM, which on a
    GPU computes in float16 whatever autocast is told."""
    linear = torch.nn.Linear(3, 3, device=device)
    options = {"num_layers": 2, "bidirectional": True, "device": device}
    module, lstm = LLTMSequence(3, 4, **options), torch.nn.LSTM(3, 4, **options)
    with warnings.catch_warnings():
        warnings.simplefilter("error", FutureWarning)
        with autocast(device, narrow):
            input = linear(torch.randn(6, 5, 3, device=device))
            state = tuple(torch.randn(4, 5, 4, device=device) for _ in "hc")
            for call in ((input,), (input, state), (input.float(), state)):
                results = flat(module(*call))
                if device != "cpu" and narrow == torch.float16:
                    assert [t.dtype for t in results] == [t.dtype for t in flat(lstm(*call))]
                assert {t.dtype for t in results} == {narrow}
        results[0].float().sum().backward()
    for parameter in module.parameters():
        assert parameter.grad.dtype == torch.float32 and torch.isfinite(parameter.grad).all()


def test_autocast_leaves_float64_alone(device, narrow):  # noqa: F811
    inputs = [t.double() for t in draw_sequence(Target32(device))]
    with autocast(device, narrow):
        assert {t.dtype for t in lltm_sequence(*inputs)} == {torch.float64}

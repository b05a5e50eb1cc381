"""What people pass by mistake: one line in their terms, naming the public class or argument."""

import re

import numpy
import pytest
import torch
from test_cell_errors import message_of
from torch.nn.utils.rnn import pack_sequence

import lltm_decoupled
from lltm_decoupled import LLTM, LLTMFunction, LLTMSequence, lltm_cell, lltm_sequence, reference

CLASSES = {
    "LLTM": LLTM,
    "reference.LLTM": reference.LLTM,
    "LLTMSequence": LLTMSequence,
    "reference.LLTMSequence": reference.LLTMSequence,
}
INPUTS = {"LLTM": (5, 3), "LLTMSequence": (6, 5, 3)}
by_class = pytest.mark.parametrize("name", CLASSES)


def make(name, **options):
    """(module, an input for it)"""
    module = CLASSES[name](3, 4, **options)
    return module, torch.randn(INPUTS[type(module).__name__])


@by_class
def test_an_input_of_another_dtype_is_told_what_the_parameters_have(name):
    module, input = make(name)
    for wrong in (input.double(), input.half(), input.bfloat16()):
        message = message_of(module, wrong)
        assert re.search(
            f"expected input of the dtype of the parameters, torch.float32, got {wrong.dtype}: "
            rf"pass input\.to\(torch\.float32\), or convert the module with \.to\({wrong.dtype}\)",
            message,
        )
    module.double()
    assert module(input.double())[0].dtype == torch.float64
    assert "torch.float64, got torch.float32" in message_of(module, input)
    for wrong in (input.long(), input > 0):  # no dtype for a module
        message = message_of(module, wrong)
        assert str(wrong.dtype) in message and f".to({wrong.dtype})" not in message


@by_class
def test_an_input_on_another_device_is_told_where_the_parameters_are(name):
    module, input = make(name, device="meta")
    message = message_of(module, input)
    assert "expected input on the device of the parameters, meta, got cpu" in message
    assert "input.to('meta')" in message


@pytest.mark.parametrize("name", ["LLTM", "reference.LLTM"])
def test_an_input_of_other_features_is_told_how_many_there_are(name):
    module, input = make(name)
    for wrong in (input[:, :2], input[0, :2]):
        message = message_of(module, wrong)
        assert message == "lltm_decoupled: expected input of input_features = 3 features, got 2"
    assert message_of(CLASSES[name](1, 4), input).endswith("of input_features = 1 feature, got 3")


def test_it_is_said_of_every_call():
    cell, layer = LLTM(3, 4), LLTMSequence(3, 4, num_layers=2)
    h = torch.zeros(2, 5, 4, dtype=torch.float64)
    input = torch.randn(6, 5, 3, dtype=torch.float64)
    packed = pack_sequence([input[:, 0], input[:2, 1]])
    for call in (
        (cell, input[0], (h[0], h[0])),
        (cell, input[0, 0]),
        (layer, input, (h, h)),
        (layer, input[:, 0]),
        (layer, packed),
    ):
        assert "dtype of the parameters" in message_of(*call)


def test_autocast_takes_what_it_can_cast():
    """And what it leaves alone, float64, is told as ever."""
    if not hasattr(torch, "autocast"):
        pytest.skip("this torch has no autocast on the CPU")
    for name in ("LLTM", "LLTMSequence"):
        module, input = make(name)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            assert module(input.bfloat16())[0].dtype == torch.bfloat16
            assert "dtype of the parameters" in message_of(module, input.double())
            # not what is wrong here
            assert "parameters" not in message_of(module, input[..., 1:].bfloat16())


def test_errors_of_other_causes_stay(monkeypatch):
    """Only an input that does not fit is blamed; the machine's own errors pass."""
    module, input = make("LLTM")

    def full(*tensors):
        raise RuntimeError("out of memory")

    monkeypatch.setattr(LLTM, "_cell", staticmethod(full))
    assert message_of(module, input) == "out of memory"


def functions():
    """{name: (function, its legal arguments)}"""
    x, w, b, h = torch.randn(5, 3), torch.randn(12, 7), torch.randn(12), torch.zeros(5, 4)
    cell = {"input": x, "weights": w, "bias": b, "old_h": h, "old_cell": h}
    sequence = {"input": x[None], "weights": w, "bias": b, "h0": h, "c0": h}
    _, new_cell, i, o, candidate, X, gates = lltm_decoupled.forward(x, w, b, h, h)
    backward = {"grad_h": h, "grad_cell": h, "new_cell": new_cell, "input_gate": i}
    backward.update(output_gate=o, candidate_cell=candidate, X=X, gate_weights=gates, weights=w)
    return {
        "lltm_cell": (lltm_cell, cell),
        "LLTMFunction.apply": (LLTMFunction.apply, cell),
        "lltm_sequence": (lltm_sequence, sequence),
        "forward": (lltm_decoupled.forward, cell),
        "backward": (lltm_decoupled.backward, backward),
    }


@pytest.mark.parametrize("name", functions())
def test_what_is_no_tensor(name):
    function, legal = functions()[name]
    function(**legal)
    for argument in legal:
        optional = ("bias", "h0", "c0") if name == "lltm_sequence" else ("bias",)
        for wrong in (numpy.zeros((5, 3)), [1.0], "text", 3, None):
            if argument in optional and wrong is None:
                continue
            with pytest.raises(TypeError) as caught:
                function(**dict(legal, **{argument: wrong}))
            or_none = " or None" if argument in optional else ""
            got = type(wrong).__name__
            assert str(caught.value) == f"{argument} must be a tensor{or_none}, got {got}"
            assert caught.value.__suppress_context__


def test_options_of_a_sequence():
    _, legal = functions()["lltm_sequence"]
    for argument in ("batch_sizes", "zoneout_h", "zoneout_c"):
        with pytest.raises(TypeError, match=f"^{argument} must be a tensor or None, got list$"):
            lltm_sequence(**legal, **{argument: [2]})


def test_what_torch_takes_for_a_tensor_is_one():
    """An object with __torch_function__ gets the call, and its own errors stay."""

    class Duck:
        @classmethod
        def __torch_function__(cls, function, types, arguments=(), options=None):
            raise RuntimeError("quack")

    _, legal = functions()["lltm_cell"]
    if "quack" in message_of(lambda: torch.ops.lltm_decoupled.cell(Duck(), *[*legal.values()][1:])):
        assert message_of(lambda: lltm_cell(**dict(legal, input=Duck()))) == "quack"


@by_class
def test_python_names_the_public_class(name):
    module, _ = make(name)
    shown = type(module).__name__
    for call in (
        lambda: CLASSES[name](),
        lambda: CLASSES[name](3),
        lambda: CLASSES[name](3, 4, size=5),
        lambda: module(),
        lambda: module(input=1, size=5),
        lambda: module.reset_parameters(1),
        lambda: module.extra_repr(1),
    ):
        message = message_of(call)
        assert "Base" not in message and "Parameters" not in message
        assert re.match(rf"({shown}\.)?\w+\(\) ", message)  # with the class from Python 3.10 on
    assert type(module).__init__.__qualname__ == f"{shown}.__init__"


@by_class
def test_a_state_that_is_passed_as_two_arguments(name):
    module, input = make(name)
    pair = "(h, cell)" if "Sequence" not in name else "(h0, c0)"
    for more in ((input, input), (None, None), (input, input, input)):
        with pytest.raises(TypeError) as caught:
            module(input, *more)
        assert str(caught.value) == (
            f"{type(module).__name__} takes input and state, and the state is a pair: "
            f"call it with (input, {pair})"
        )


def test_no_projections():
    for wrong in (2, -1, None):
        with pytest.raises(TypeError, match="proj_size is not supported, .* got " + str(wrong)):
            LLTMSequence(3, 4, proj_size=wrong)
    assert repr(LLTMSequence(3, 4, proj_size=0)) == repr(LLTMSequence(3, 4))
    with pytest.raises(TypeError, match="unexpected keyword argument '?size"):
        LLTMSequence(3, 4, size=2)


@by_class
@pytest.mark.parametrize("dtype", [torch.int64, torch.bool, torch.complex64, "float32", 3])
def test_dtypes_that_a_module_cannot_have(name, dtype):
    with pytest.raises(ValueError) as caught:
        make(name, dtype=dtype)
    assert str(caught.value) == (
        f"dtype must be torch.float32, float64, float16 or bfloat16, got {dtype!r}"
    )
    for legal in (None, torch.float64, torch.float16, torch.bfloat16):
        found = {parameter.dtype for parameter in make(name, dtype=legal)[0].parameters()}
        assert found == {legal or torch.float32}


@by_class
@pytest.mark.parametrize("bias", [None, 0, 1, "no"])
def test_bias_is_a_bool(name, bias):
    with pytest.raises(TypeError, match=rf"^bias must be a bool, got {bias!r}$"):
        make(name, bias=bias)


def test_zoneout_shows_the_pair():
    for wrong in ((-1, 0), (0, 1.5), [0.1, "0.5"], 0.5):
        with pytest.raises(ValueError) as caught:
            LLTMSequence(3, 4, zoneout=wrong)
        assert str(caught.value) == (
            f"zoneout must be a pair of numbers in [0, 1] (of h, of the cell), got {wrong!r}"
        )


@pytest.mark.parametrize("device", ["cpu", "meta"])
def test_shapes_and_dtypes_are_shown_as_python_shows_them(device):
    if device == "meta" and not hasattr(torch, "library"):
        pytest.skip(f"torch {torch.__version__} has no torch.library for meta tensors")
    for function, argument in (("lltm_cell", "old_h"), ("lltm_sequence", "h0")):
        function, legal = functions()[function]
        legal = {name: tensor.to(device) for name, tensor in legal.items()}
        h = legal[argument]
        for name, wrong, words in (
            (argument, h[1:], ("(5, 4)", "(4, 4)")),
            (argument, h.double(), ("torch.float32", "torch.float64")),
            ("bias", torch.zeros(13).to(device), ("(12,)", "(13,)")),
            ("input", legal["input"].long(), ("torch.int64",)),
        ):
            message = message_of(lambda f=function, a=dict(legal, **{name: wrong}): f(**a))
            assert all(word in message for word in words), message

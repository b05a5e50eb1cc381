"""The sequence's operators under torch.library.opcheck, on fake tensors and on meta tensors."""

import pytest
import torch
from helpers import leaves
from sequence_helpers import draw_masks, draw_sequence, pack, ragged
from test_opcheck import needs

ops = torch.ops.lltm_decoupled
library = getattr(torch, "library", None)  # torch before 1.12 has none
needs_opcheck = needs(hasattr(library, "opcheck"), "torch.library.opcheck")
needs_fake = needs(hasattr(library, "register_fake"), "torch.library.register_fake")


def test_schema():
    """The public operator is a contract."""
    found = [s for s in torch._C._jit_get_all_schemas() if s.name == "lltm_decoupled::sequence"]
    assert [str(schema) for schema in found] == [
        "lltm_decoupled::sequence(Tensor input, Tensor weights, Tensor? bias, Tensor? h0=None, "
        "Tensor? c0=None, Tensor? batch_sizes=None, bool reverse=False, bool recompute=False, "
        "Tensor? zoneout_h=None, Tensor? zoneout_c=None) "
        "-> (Tensor output, Tensor h_n, Tensor c_n)"
    ]


WAYS = ["plain", "reverse", "packed", "zoneout", "recompute", "packed zoneout recompute reverse"]
WAYS += ["stateless", "stateless recompute"]


def arguments_of(way, inputs):
    """All ten arguments of the operator, for the ways named in `way`."""
    batch_sizes, masks = None, {}
    if "stateless" in way:
        inputs = [*inputs[:3], None, None]
    if "packed" in way:
        batch_sizes = ragged(*inputs[0].shape[:2])
        inputs = pack(inputs, batch_sizes)
    if "zoneout" in way:
        masks = draw_masks(inputs)
    flags = ("reverse" in way, "recompute" in way)
    return (*inputs, batch_sizes, *flags, masks.get("zoneout_h"), masks.get("zoneout_c"))


@needs_opcheck
@pytest.mark.parametrize("way", WAYS)
def test_opcheck(way, float64_target):
    inputs = draw_sequence(float64_target)
    torch.library.opcheck(ops.sequence.default, arguments_of(way, inputs))
    torch.library.opcheck(ops.sequence.default, arguments_of(way, leaves(inputs)))


@needs_opcheck
@pytest.mark.parametrize("sizes", [(0, 5), (4, 0), (1, 1), (33, 2)], ids=str)
def test_opcheck_of_sizes(sizes, float64_target):
    for way, bias in (("plain", "row"), ("recompute", None)):
        inputs = leaves(draw_sequence(float64_target, *sizes, bias=bias))
        torch.library.opcheck(ops.sequence.default, arguments_of(way, inputs))


@needs_opcheck
@pytest.mark.parametrize("way", WAYS)
def test_opcheck_of_the_halves(way, float64_target):
    arguments = arguments_of(way, draw_sequence(float64_target))
    torch.library.opcheck(ops._sequence_forward.default, arguments)
    output, h_n, c_n, activations, cells = ops._sequence_forward(*arguments)
    kept = (*arguments[:5], output, activations, cells, *arguments[5:])
    masks = ([True] * 5, [True, False, False, True, False])
    for grads, mask in zip(((output, h_n, c_n), (None, None, c_n)), masks):
        torch.library.opcheck(ops._sequence_backward.default, (*grads, *kept, mask))


@needs_fake
@pytest.mark.parametrize("way", WAYS)
def test_fake_tensors(way, target):
    """Shapes, dtypes, devices and strides, of outputs and gradients, without memory."""
    from torch._subclasses.fake_tensor import FakeTensorMode

    real = arguments_of(way, draw_sequence(target))
    expected = ops._sequence_forward(*real)
    with FakeTensorMode() as mode:
        fake = [mode.from_tensor(t) if isinstance(t, torch.Tensor) else t for t in real]
        for output, value in zip(ops._sequence_forward(*fake), expected):
            assert (output.shape, output.stride()) == (value.shape, value.stride())
            assert (output.dtype, output.device) == (value.dtype, value.device)
        fake[:5] = leaves(fake[:5])
        outputs = ops.sequence(*fake)
        wanted = [t for t in fake[:5] if t is not None]
        gradients = torch.autograd.grad(sum(t.sum() for t in outputs), wanted)
        assert [g.shape for g in gradients] == [t.shape for t in wanted]


def test_meta_tensors_give_shapes(target):
    if not hasattr(torch, "library"):
        pytest.skip(f"torch {torch.__version__} has no torch.library for shape functions")
    for way in WAYS:
        arguments = arguments_of(way, draw_sequence(target))
        expected = ops.sequence(*arguments)
        meta = [t.to("meta") if isinstance(t, torch.Tensor) else t for t in arguments]
        real_sizes = [*meta[:5], arguments[5], *meta[6:]]  # of packed data on the meta device
        for inputs in (meta, real_sizes):
            for output, value in zip(ops.sequence(*inputs), expected):
                assert (output.shape, output.dtype) == (value.shape, value.dtype)
                assert output.device.type == "meta" and output.is_contiguous()

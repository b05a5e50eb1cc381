"""ONNX knows no operators of ours: the reference modules are exported, with the same parameters."""

import inspect
import warnings

import pytest
import torch
from test_compile import Step

from lltm_decoupled import LLTM, LLTMSequence, reference

by_exporter = pytest.mark.parametrize("exporter", ["dynamo", "torchscript"])
# torch itself calls what it has deprecated.
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning:torch.*")


def export_to_onnx(exporter, model, inputs, path):
    """Returns a function of the inputs."""
    onnx = pytest.importorskip("onnx", reason="ONNX is not installed")
    pytest.importorskip("onnx.reference", reason="this ONNX cannot run models")
    options = {}
    if exporter == "dynamo":
        pytest.importorskip("onnxscript", reason="torch's new exporter needs onnxscript")
        if not hasattr(torch.onnx, "ONNXProgram"):
            pytest.skip(f"torch {torch.__version__} has no exporter by dynamo")
        options["dynamo"] = True
    elif "dynamo" in inspect.signature(torch.onnx.export).parameters:
        options["dynamo"] = False
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch's exporters warn of their own future
        torch.onnx.export(model, inputs, path, **options)
    session = onnx.reference.ReferenceEvaluator(path)
    names = [value.name for value in session.proto_.graph.input]

    def run(*inputs):
        return session.run(None, {name: t.numpy() for name, t in zip(names, inputs)})

    return run


@by_exporter
def test_a_cell(exporter, tmp_path):
    cell, portable = LLTM(3, 4), reference.LLTM(3, 4)
    portable.load_state_dict(cell.state_dict())
    inputs = (torch.randn(5, 3), torch.randn(5, 4), torch.randn(5, 4))
    run = export_to_onnx(exporter, Step(portable), inputs, str(tmp_path / "cell.onnx"))
    for actual, expected in zip(run(*inputs), Step(cell)(*inputs)):
        torch.testing.assert_close(torch.from_numpy(actual), expected.detach())


@by_exporter
@pytest.mark.parametrize("options", ({}, {"bidirectional": True}), ids=str)
def test_a_layer(exporter, options, tmp_path):
    """The steps of the loop are in the graph, one by one."""
    layer, portable = LLTMSequence(3, 4, **options), reference.LLTMSequence(3, 4, **options)
    portable.load_state_dict(layer.state_dict())
    input = torch.randn(6, 5, 3)
    run = export_to_onnx(exporter, portable, (input,), str(tmp_path / "layer.onnx"))
    output, (h_n, c_n) = layer(input)
    for actual, expected in zip(run(input), (output, h_n, c_n)):
        torch.testing.assert_close(torch.from_numpy(actual), expected.detach())

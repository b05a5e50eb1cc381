"""The examples run, and check themselves; those in C++ where there is a compiler."""

import os
import runpy

import pytest
from repository import ROOT, files, why_no_compiler

EXAMPLES = [path for path in files("examples", suffixes=(".py",)) if path.count("/") == 1]
IN_CXX = ("sin_add", "my_op")
# what a run must print, beside passing its own checks
SAYS = {
    "conv_bn": "kept for backward: 50.0 MiB as two layers, 26.0 MiB fused",
    "cube": "gradgradcheck finds the slip",
    "linear": "gradcheck and gradgradcheck: right",
    "logging_tensor": "cat([LoggingTensor[2, 3], Tensor[1, 3]])",
    "metadata_tensor": "note: metres",
    "mul_constant": "a gradient that is not there stays None",
    "my_op": "my_op: 3 x - y, with the right gradients",
    "scalar_tensor": "ScalarTensor(size=5, value=5)",
    "sin_add": "gradcheck: right",
}


def test_every_example_is_known():
    assert sorted(SAYS) == [os.path.basename(path)[:-3] for path in EXAMPLES]


@pytest.mark.parametrize("name", SAYS)
def test_example(name, capsys, monkeypatch, tmp_path):
    if name in IN_CXX:
        if why_no_compiler():
            pytest.skip(why_no_compiler())
        pytest.importorskip("ninja")
        # compiled here and now, not taken from the user's cache
        monkeypatch.setenv("TORCH_EXTENSIONS_DIR", str(tmp_path))
        monkeypatch.setenv("PATH", os.environ["PATH"])  # the example adds to it
    runpy.run_path(str(ROOT / "examples" / (name + ".py")), run_name="__main__")
    assert SAYS[name] in capsys.readouterr().out


@pytest.mark.parametrize("path", EXAMPLES)
def test_example_says_how_to_run_it(path):
    text = (ROOT / path).read_text(encoding="utf-8")
    assert f"    python {path}\n" in text and "It teaches: " in text

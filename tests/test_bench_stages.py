"""`bench --stages`: the ladder is built, right and timed on a CPU; a GPU's steps need a GPU."""

import json
from pathlib import Path

import pytest
import torch
from repository import tool
from test_cli import fails
from torch.utils import cpp_extension

from build_support import load_folder
from lltm_decoupled import cli, reference
from lltm_decoupled.bench import stages

TINY = ["bench", "--stages", "--device", "cpu", "--turns", "1", "--sizes"]
CPU_STAGES = ["Python", "C++ (ATen)", "decoupled (ours)"]


def test_the_ladder(tmp_path, capsys, monkeypatch):
    """The one test that compiles; the check of each stage is in the command itself."""
    for name in ("c++", "ninja"):
        if not tool(name):
            pytest.skip(f"no {name}")
    monkeypatch.setenv("TORCH_EXTENSIONS_DIR", str(tmp_path / "extensions"))
    path = tmp_path / "stages.json"
    assert cli.main([*TINY, "3x2x4", "16x32x128", "--json", str(path)]) == 0
    rows = json.loads(path.read_text(encoding="utf-8"))["rows"]
    found = [(row["H"], row["stage"], row["pass"]) for row in rows]
    assert found == [
        (size, stage, pass_name)
        for size in (4, 128)
        for stage in CPU_STAGES
        for pass_name in ("forward", "backward")
    ]
    for row in rows:
        assert row["error"] is None and row["device"] == "cpu"
        assert 0 < row["us_low"] <= row["us"] <= row["us_high"]
    published = {(r["H"], r["stage"], r["pass"]): r["published_us"] for r in rows}
    assert published[128, "Python", "forward"] == 506.48
    assert published[128, "C++ (ATen)", "backward"] == 443.523
    assert {published[key] for key in published if key[0] == 4} == {None}
    printed = capsys.readouterr().out
    assert "(B, I, H) = (16, 32, 128), float32" in printed and "506.480 / 444.694" in printed


@pytest.mark.parametrize("wrong", ["output", "gradient"])
def test_a_wrong_stage_is_not_timed(monkeypatch, capsys, wrong):
    def cell(input, weights, bias, old_h, old_cell):
        new_h, new_cell = reference.lltm_cell(input, weights, bias, old_h, old_cell)
        if wrong == "output":
            return new_h * 1.001, new_cell
        return new_h + 1e-3 * (bias.sum() - bias.sum().detach()), new_cell

    monkeypatch.setitem(stages.STAGES, "C++ (ATen)", stages.Stage(cell))
    assert cli.main([*TINY, "3x2x4"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert any("C++ (ATen)        left out: ArithmeticError: differs from the" in x for x in lines)
    monkeypatch.setitem(stages.STAGES, "decoupled (ours)", stages.Stage(cell))
    assert cli.main([*TINY, "3x2x4"]) == 1


def test_a_stage_that_cannot_be_built_says_why(monkeypatch, capsys):
    def build(name):
        raise RuntimeError("Ninja is required")

    monkeypatch.setattr(stages, "build", build)
    assert cli.main([*TINY, "3x2x4"]) == 0
    printed = capsys.readouterr().out
    assert "C++ (ATen)        left out: RuntimeError: Ninja is required" in printed
    assert printed.splitlines()[-1].startswith("cpu     decoupled (ours)")


def test_the_ladder_needs_a_checkout(monkeypatch, capsys):
    monkeypatch.setattr(stages, "FOLDER", "nowhere")
    line = fails(capsys, *TINY, "3x2x4")
    assert "--stages needs a checkout of the sources: there is no nowhere" in line


def test_a_gpu_has_every_step(monkeypatch):
    """Which steps are built, and what is printed of them, without the GPU that runs them."""
    asked = []
    monkeypatch.setattr(stages, "build", asked.append)
    monkeypatch.setattr(stages, "as_cell", lambda module: reference.lltm_cell)
    cells, errors = stages.build_all(with_gpu=True)
    assert list(cells) == list(stages.STAGES) and errors == {}
    assert asked == ["C++ (ATen)", "CUDA, pointers", "CUDA, accessors"]
    assert set(stages.PUBLISHED) <= {(d, s) for d in ("cpu", "cuda") for s in stages.STAGES}


def test_gradients_come_in_the_order_of_the_arguments():
    """A compiled stage in Python: what torch.autograd gets from its two functions."""

    class Module:
        @staticmethod
        def forward(input, weights, bias, old_h, old_cell):
            return [*reference.lltm_cell(input, weights, bias, old_h, old_cell), input]

        @staticmethod
        def backward(grad_h, grad_cell, new_cell, input, weights):
            assert grad_h.is_contiguous() and grad_cell.is_contiguous()
            shapes = (3, 2), (12, 6), (12,), (3, 4), (3, 4)
            return [torch.full(shape, float(n)) for n, shape in enumerate(shapes)]

    drawn = [t.requires_grad_() for t in stages.check.draw((), (3, 2, 4), torch.float32)]
    outputs = stages.as_cell(Module)(*drawn)
    gradients = torch.autograd.grad(sum(output.sum() for output in outputs), drawn)
    assert [gradient.unique().item() for gradient in gradients] == [0, 1, 2, 3, 4]


def test_a_lock_is_told_of(tmp_path, monkeypatch, capsys):
    """torch waits for it without a word, for ever where the build that took it was killed."""
    monkeypatch.setenv("TORCH_EXTENSIONS_DIR", str(tmp_path))
    folder = load_folder.make(cpp_extension, "some")
    assert Path(folder).parent == tmp_path and not capsys.readouterr().err
    lock = Path(folder, "lock")
    lock.touch()
    assert load_folder.make(cpp_extension, "some") == folder
    assert f"waiting for {lock}: another process builds there" in capsys.readouterr().err

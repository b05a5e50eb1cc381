"""`bench`: its options and defaults, what a user can do wrong with them, and its plot."""

import os
import re
import subprocess
import sys

import pytest
import torch
from repository import read
from test_bench import PAIR, TINY, bench
from test_cli import fails

from lltm_decoupled import cli
from lltm_decoupled.bench import contenders, measure, options, plot


@pytest.mark.parametrize("what", ["cell", "layer"])
def test_the_default_is_every_contender_and_the_usual_sizes(what):
    parser = cli.build_parser()
    settings = options.pick(parser.parse_args(["bench", "--device", "cpu", "--what", what]))
    present, absent = measure.chosen(what, settings)
    assert {*present, *absent} == set(contenders.CONTENDERS[what]) and list(present)[0] == "ours"
    assert settings.sizes_of(what) == options.SIZES[what, "cpu"]
    assert settings._replace(quick=True).sizes_of(what) == options.SIZES[what, "cpu"][:2]
    assert settings._replace(device=torch.device("cuda")).sizes_of(what)[0][0] == 16
    assert (settings.steps, settings.dtypes) == (64, [torch.float32])


@pytest.mark.parametrize("device", options.SWEEPS)
def test_a_plot_is_of_several_sizes(device):
    for over, fixed in ((0, 2), (2, 0)):
        values = {}
        for size in options.SWEEPS[device]:
            values.setdefault(size[fixed], []).append(size[over])
        assert len(max(values.values(), key=len)) >= 3


def test_plot(tmp_path):
    pytest.importorskip("matplotlib")
    path = tmp_path / "steps.png"
    sizes = "--sizes", "3x2x4", "3x2x8", "5x2x4"
    assert bench(*PAIR, "--passes", "forward", *sizes, "--plot", path) == 0
    assert path.read_bytes().startswith(b"\x89PNG")


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="no such paths")
@pytest.mark.parametrize(
    "arguments, words",
    [
        (["--sizes", "3x2"], "'3x2' is no size: batch x inputs x state, such as 16x32x128"),
        (["--sizes", "3x0x4"], "is no size"),
        (["--dtype", "float32,int8"], "unknown dtype 'int8': choose among float32, float64"),
        (["--contenders", "GRU"], "unknown contender 'GRU': choose among ours, plain"),
        (["--passes", "backward"], "unknown pass 'backward'"),
        (["--what", "cell", "--contenders", "haste"], "haste is no cell"),
        (["--what", "network"], "network"),
        (["--steps", "0"], "0 is less than 1"),
        (["--threads", "x"], "whole number"),
        (["--device", "abacus"], "cannot use device 'abacus'"),
        (["--tf32"], "--tf32 needs a GPU"),
        (["--json", "/no/such/folder/file"], "there is no folder /no/such/folder"),
        (["--csv", "/"], "cannot save /"),
        (["--stages", "--what", "cell"], "--what does not go with --stages"),
        (["--stages", "--steps", "3"], "--steps does not go with --stages"),
    ],
)
def test_mistakes(capsys, arguments, words):
    own = [] if "--stages" in arguments else ["--device", "cpu"]
    assert words in fails(capsys, "bench", *own, *arguments)


def test_plot_without_matplotlib(capsys, monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    line = fails(capsys, *TINY, "--plot", tmp_path / "steps.png")
    assert "pip install matplotlib, or lltm_decoupled[plot]" in line


def test_a_plot_is_png(capsys, monkeypatch, tmp_path):
    monkeypatch.setattr(plot, "need_matplotlib", lambda: None)
    assert "does not end in .png" in fails(capsys, *TINY, "--plot", tmp_path / "steps.pdf")


def test_the_commands_of_the_docs_are_understood():
    text = read("docs/benchmarks.md")
    commands = re.findall(r"^python -m lltm_decoupled (bench[^#\n]*)", text, re.MULTILINE)
    assert len(commands) >= 8
    for command in commands:
        assert cli.build_parser().parse_args(command.split()).run
    assert [name for name in options.NAMES if name not in text] == []


def test_help_shows_examples(capsys):
    with pytest.raises(SystemExit):
        cli.main(["bench", "--help"])
    assert "examples:\n  python -m lltm_decoupled bench --quick\n" in capsys.readouterr().out


def test_matplotlib_is_imported_for_a_plot_only():
    code = "import sys, lltm_decoupled.bench; assert 'matplotlib' not in sys.modules"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


def test_sizes_given_twice_are_all_measured():
    arguments = ["bench", "--sizes", "2x4x4", "--sizes", "3x4x4", "4x4x4"]
    assert cli.build_parser().parse_args(arguments).sizes == [(2, 4, 4), (3, 4, 4), (4, 4, 4)]

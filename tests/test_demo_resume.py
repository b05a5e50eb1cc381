"""Going on with a training that was stopped: checkpoints on the way, metrics, and the plot."""

import builtins
import json
import os

import pytest
import torch
from test_cli import fails
from test_demo import assert_equal_weights

from lltm_decoupled import cli, demo
from lltm_decoupled.demo import checkpoint, curve, training

STORY = "The quick brown fox jumps over the lazy dog, and the dog sleeps on.\n" * 30
SIZES = ["--hidden", 16, "--batch", 4, "--window", 8, "--device", "cpu", "--sample", 0]


class Killed(BaseException):
    """Nothing catches it, as nothing catches SIGKILL."""


@pytest.fixture
def files(tmp_path):
    (tmp_path / "story.txt").write_text(STORY, encoding="utf-8")
    return tmp_path


@pytest.fixture
def command(files):
    """The words of a training: 30 steps and a checkpoint every 10, in a folder by the name."""

    def command(name, *more):
        (files / name).mkdir(exist_ok=True)
        outputs = ["--save", files / name / "last.pt", "--metrics", files / name / "curve"]
        words = ["demo", "--text", files / "story.txt", "--steps", 30, "--save-every", 10]
        return [str(word) for word in [*words, *SIZES, *outputs, *more]]

    return command


@pytest.fixture
def killed(command, monkeypatch):
    """Start a training that dies in the update after ``step``."""

    def killed(name, step, *more):
        rate = training.Trainer.rate

        def dies(self):
            if self.step == step:
                raise Killed
            return rate(self)

        with monkeypatch.context() as patch, pytest.raises(Killed):
            patch.setattr(training.Trainer, "rate", dies)
            cli.main(command(name, *more))

    return killed


def timeless(path):
    """The lines of a metrics file without what a clock says."""
    updates = [json.loads(line) for line in path.read_text().splitlines()]
    return [(u["step"], u["loss"], u["bits"], u["processes"]) for u in updates]


def test_a_killed_training_goes_on_as_if_nothing_had_happened(files, command, killed, capsys):
    assert cli.main(command("whole")) == 0
    metrics = files / "stopped" / "curve"
    for step in (5, 17, 25):
        killed("stopped", step, "--resume")
        assert [number for number, *_ in timeless(metrics)] == list(range(1, step + 1))
        with metrics.open("a") as file:
            file.write('{"step": 1')  # a line that was being written
    capsys.readouterr()
    assert cli.main(command("stopped", "--resume")) == 0
    output = capsys.readouterr().out
    assert "before" in output and "after 20 steps" in output and "after 30 steps" in output
    assert timeless(metrics) == timeless(files / "whole" / "curve")
    assert_equal_weights(files / "whole" / "last.pt", files / "stopped" / "last.pt")


def test_nothing_is_left_to_do(files, command, capsys):
    assert cli.main(command("a")) == 0
    before = timeless(files / "a" / "curve")
    assert cli.main(command("a", "--resume")) == 0
    assert timeless(files / "a" / "curve") == before and len(before) == 30
    assert cli.main(command("a", "--resume", "--steps", 32)) == 0
    assert timeless(files / "a" / "curve")[:30] == before
    assert "after 32 steps" in capsys.readouterr().out


def test_metrics(files, command):
    assert cli.main(command("a")) == 0
    lines = (files / "a" / "curve").read_text().splitlines()
    last = json.loads(lines[-1])
    assert last.pop("samples_per_second") > 0 and last.pop("seconds") > 0
    assert last["loss"] == pytest.approx(last["bits"] * 0.6931, rel=1e-4)
    assert set(last) == {"step", "loss", "bits", "processes"}
    assert (last["step"], last["processes"], len(lines)) == (30, 1, 30)
    assert cli.main(command("a")) == 0, "without --resume a training and its metrics start anew"
    assert len((files / "a" / "curve").read_text().splitlines()) == 30


def test_metrics_on_a_full_disk(command, capsys, monkeypatch):
    class Full:
        def write(self, line):
            raise OSError(28, "No space left on device")

        def close(self):
            pass

    monkeypatch.setattr(curve, "_open", lambda path, updates: Full())
    line = fails(capsys, *command("a"))
    assert "cannot write" in line and "No space left on device" in line


def test_the_seconds_go_on(files, command, killed):
    killed("a", 17)
    metrics = files / "a" / "curve"
    lines = [json.loads(line) for line in metrics.read_text().splitlines()]
    for line in lines:
        line["seconds"] += 1000
    metrics.write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert cli.main(command("a", "--resume")) == 0
    seconds = [json.loads(line)["seconds"] for line in metrics.read_text().splitlines()]
    assert len(seconds) == 30 and seconds == sorted(seconds) and seconds[-1] < 1100


@pytest.mark.parametrize("damage", [None, b"", b"torn"], ids=["missing", "empty", "torn"])
def test_a_lost_checkpoint_falls_back_to_the_one_before(files, command, killed, capsys, damage):
    assert cli.main(command("whole")) == 0
    killed("a", 25)
    path = files / "a" / "last.pt"
    if damage is None:
        path.unlink()
    else:
        path.write_bytes(path.read_bytes()[:2000] if damage else b"")
    capsys.readouterr()
    kept = checkpoint.previous(str(path))
    killed("a", 15, "--resume")
    assert checkpoint.load(kept)["step"] == 10, "a damaged file does not take its place"
    killed("a", 25, "--resume")  # saves a new one
    assert checkpoint.load(kept)["step"] == 10 and checkpoint.load(str(path))["step"] == 20
    output = capsys.readouterr().out
    assert cli.main(command("a", "--resume")) == 0
    assert f"resume     from {path}.previous, for" in output and "after 10 steps" in output
    assert timeless(files / "a" / "curve") == timeless(files / "whole" / "curve")


def test_no_whole_checkpoint_is_told(files, command, killed, capsys):
    killed("a", 25)
    os.remove(checkpoint.previous(str(files / "a" / "last.pt")))
    (files / "a" / "last.pt").write_bytes(b"torn")
    assert "is no checkpoint" in fails(capsys, *command("a", "--resume"))
    assert len(timeless(files / "a" / "curve")) == 25, "nothing was lost"


@pytest.mark.parametrize("call", ["fsync", "remove", "link", "replace"])
def test_a_save_killed_at_any_moment_leaves_a_whole_checkpoint(files, command, monkeypatch, call):
    """The process dies instead of one of the calls that a save makes."""

    def dies(*arguments):
        raise Killed

    words = command("a")[:-2]  # without metrics, only a save makes these calls
    assert cli.main(words) == 0  # it and the one before are there
    with monkeypatch.context() as patch, pytest.raises(Killed):
        patch.setattr(checkpoint.os, call, dies)
        cli.main(words)
    contents, mistake = checkpoint.load_latest(str(files / "a" / "last.pt"))
    assert contents["step"] == 30 and mistake is None


def test_a_diverging_training_keeps_the_last_good_checkpoint(files, command, capsys):
    assert cli.main(command("a", "--steps", 5)) == 0
    before = (files / "a" / "last.pt").read_bytes()
    capsys.readouterr()
    assert "diverged" in fails(capsys, *command("a", "--lr", 1e30, "--save-every", 2))
    assert (files / "a" / "last.pt").read_bytes() == before


def test_wrong_ways_to_resume(files, command, capsys):
    assert cli.main(command("a")) == 0
    capsys.readouterr()
    path = files / "a" / "last.pt"
    assert "--save" in fails(capsys, "demo", "--resume")
    assert "--load" in fails(capsys, *command("a", "--resume", "--load", path))
    assert "a file each" in fails(capsys, *command("a", "--metrics", path))
    line = fails(capsys, *command("a", "--resume", "--batch", 5))
    assert f"{path} holds a training with --batch 4, not 5" in line
    line = fails(capsys, *command("a", "--resume", "--metrics", files / "story.txt"))
    assert "would overwrite the text" in line
    (files / "other.txt").write_text(STORY)
    line = fails(capsys, *command("a", "--resume", "--metrics", files / "other.txt"))
    assert "no metrics file" in line
    assert (files / "other.txt").read_text() == STORY
    assert (files / "story.txt").read_text() == STORY
    (files / "story.txt").write_text(STORY + STORY)
    assert "another text" in fails(capsys, *command("a", "--resume"))


@pytest.mark.parametrize("option", ["--metrics", "--plot"])
def test_a_place_that_cannot_be_written_is_told_before_training(files, command, capsys, option):
    for place in (files / "nowhere" / "a.png", files):
        assert "cannot save" in fails(capsys, *command("a", "--steps", 10**9, option, place))


def test_the_plot(files, command, killed, capsys, monkeypatch):
    pytest.importorskip("matplotlib")
    drawn, draw = [], demo.draw
    monkeypatch.setattr(demo, "draw", lambda path, points: drawn.append(points))
    killed("a", 17)
    plot = ["--plot", files / "a.png", "--resume"]
    assert cli.main(command("a", *plot)) == 0
    (points,) = drawn
    assert [step for step, _ in points] == list(range(1, 31)), "also what was before the stop"
    draw(str(files / "a.png"), points)
    assert (files / "a.png").read_bytes()[1:4] == b"PNG"
    assert "plot       " in capsys.readouterr().out
    line = fails(capsys, *command("a", "--steps", 10**9, "--plot", files / "a.abc"))
    assert ".png" in line


def test_a_plot_without_matplotlib(files, command, capsys, monkeypatch):
    original = builtins.__import__

    def without(name, *rest):
        if name.startswith("matplotlib"):
            raise ImportError(name)
        return original(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without)
    words = command("a", "--steps", 10**9, "--plot", files / "a.png")
    assert "pip install matplotlib" in fails(capsys, *words)
    assert cli.main(command("a")) == 0, "it is imported only for a plot"
    assert torch.is_tensor(checkpoint.load(str(files / "a" / "last.pt"))["model"]["layer.bias_l0"])

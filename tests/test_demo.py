"""The demo at tiny sizes: it learns, agrees with the reference, and goes on exactly."""

import re
import signal
import types

import pytest
import torch

from lltm_decoupled import cli, demo
from lltm_decoupled.demo import checkpoint, model, text, training
from lltm_decoupled.demo.report import speed_of

SIZES = ["--hidden", "16", "--batch", "4", "--window", "8", "--device", "cpu"]
STORY = "The quick brown fox jumps over the lazy dog, and the dog sleeps on.\n" * 30


@pytest.fixture(autouse=True)
def python_handles_ctrl_c():
    """Also where the suite was started in the background, which ignores Ctrl-C."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture
def story(tmp_path):
    path = tmp_path / "story.txt"
    path.write_text(STORY, encoding="utf-8")
    return path


@pytest.fixture
def run(story, capsys):
    """Run the demo on the story; return its exit code and what it printed."""

    def run(*arguments):
        code = cli.main(["demo", "--text", str(story), *SIZES, *map(str, arguments)])
        return code, capsys.readouterr().out

    return run


def bits(output, label):
    return float(re.search(rf"^{label} +([\d.]+) bits", output, re.MULTILINE).group(1))


def weights(path):
    return checkpoint.load(str(path))["model"]


def assert_equal_weights(one, other):
    one, other = weights(one), weights(other)
    assert list(one) == list(other)
    for name in one:
        assert torch.equal(one[name], other[name]), name


def interrupt_at(monkeypatch, step):
    """Press Ctrl-C in the middle of the update that makes ``step``."""
    rate = training.Trainer.rate

    def interrupted(self):
        if self.step == step - 1:
            signal.raise_signal(signal.SIGINT)
        return rate(self)

    monkeypatch.setattr(training.Trainer, "rate", interrupted)


def test_it_learns_and_agrees_with_the_reference(run):
    code, output = run("--steps", 60, "--sample", 50)
    assert code == 0
    assert bits(output, "before") > 4
    assert bits(output, "after") < 3.5
    assert bits(output, "reference") == pytest.approx(bits(output, "after"), abs=2e-4)
    assert "agrees" in output
    speed = r"^training .* s, (.*) characters a second \((.*) samples, each a window of 8\)$"
    found = re.search(speed, output, re.MULTILINE).groups()
    characters, samples = (int(number.replace(",", "")) for number in found)
    assert characters == pytest.approx(8 * samples, abs=5)
    assert re.search(r"^speed .*a loop over the cell takes .* times as long$", output, re.MULTILINE)
    sample = output.split("sample\n")[1]
    assert len(sample) == 50 + len("\n")
    assert set(sample) <= set(STORY)


def test_the_manual_of_python_is_the_default_text(capsys):
    assert cli.main(["demo", *SIZES, "--steps", "2", "--sample", "0"]) == 0
    output = capsys.readouterr().out
    assert "the manual of Python" in output
    assert "\nsample\n" not in output


def test_no_part_of_the_manual_occurs_twice():
    paragraphs = text.python_manual().split("\n\n")
    assert len(paragraphs) == len(set(paragraphs)) > 1000


def test_a_wrong_layer_is_noticed(run, monkeypatch):
    class Wrong(model.lltm_decoupled.reference.LLTMSequence):
        def forward(self, input, state=None):
            output, state = super().forward(input, state)
            return output * 1.01, state

    monkeypatch.setattr(model.lltm_decoupled.reference, "LLTMSequence", Wrong)
    code, output = run("--steps", 5)
    assert code == 1
    assert "DISAGREES" in output


def test_the_lstm_to_compare_with(run, tmp_path):
    def parameters(output):
        return int(re.search(r"([\d,]+) parameters", output).group(1).replace(",", ""))

    code, output = run("--steps", 60, "--layer", "LSTM", "--save", tmp_path / "a.pt")
    assert code == 0
    assert bits(output, "after") < 3.5
    assert "reference" not in output
    _, ours = run("--steps", 0)
    assert abs(parameters(output) / parameters(ours) - 1) < 0.1  # one unit more or less of 16
    code, output = run("--steps", 0, "--load", tmp_path / "a.pt")
    assert code == 0 and "LSTM(" in output


def test_a_run_is_repeatable(run, tmp_path):
    outputs = [run("--steps", 5, "--save", tmp_path / f"{k}.pt")[1] for k in range(2)]
    assert_equal_weights(tmp_path / "0.pt", tmp_path / "1.pt")
    samples = [output.split("sample\n")[1] for output in outputs]
    assert samples[0] == samples[1]
    run("--steps", 5, "--seed", 1, "--save", tmp_path / "2.pt")
    name = "layer.weights_l0"
    assert not torch.equal(weights(tmp_path / "0.pt")[name], weights(tmp_path / "2.pt")[name])


@pytest.mark.parametrize("first", [7, 61])  # within the text; at its end (there are 60 windows)
def test_a_loaded_training_goes_on_as_if_never_stopped(run, tmp_path, first):
    whole, part, rest = (tmp_path / name for name in ("whole.pt", "part.pt", "rest.pt"))
    run("--steps", first + 10, "--save", whole)
    run("--steps", first, "--save", part)
    code, output = run("--steps", 10, "--load", part, "--save", rest)
    assert code == 0
    assert f"after {first} steps" in output and f"after {first + 10} steps" in output
    assert_equal_weights(whole, rest)


def test_ctrl_c_keeps_what_was_trained(run, tmp_path, monkeypatch):
    run("--steps", 6, "--save", tmp_path / "six.pt")
    interrupt_at(monkeypatch, 6)
    code, output = run("--steps", 1000, "--save", tmp_path / "interrupted.pt")
    assert code == 0
    assert "ended early: interrupted" in output
    assert "after 6 steps" in output and "agrees" in output and "sample" in output
    assert_equal_weights(tmp_path / "six.pt", tmp_path / "interrupted.pt")
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_second_ctrl_c_ends_the_program(run, monkeypatch):
    def twice(self):
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(training.Trainer, "rate", twice)
    code, _ = run("--steps", 5)
    assert code == cli.INTERRUPTED
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_the_time_limit(run):
    code, output = run("--seconds", 0.2)
    assert code == 0
    assert "ended early: the time limit of 0.2 s" in output


def test_a_loaded_model_is_only_evaluated_with_no_steps(run, tmp_path):
    _, trained = run("--steps", 30, "--save", tmp_path / "a.pt")
    code, output = run("--steps", 0, "--load", tmp_path / "a.pt")
    assert code == 0
    assert bits(output, "before") == bits(output, "after") == bits(trained, "after")
    assert "training   none in this run\n" in output


def test_a_checkpoint_brings_its_sizes(story, run, tmp_path, capsys):
    run("--steps", 1, "--save", tmp_path / "a.pt")
    again = ["demo", "--text", story, "--load", tmp_path / "a.pt", "--steps", "1"]
    assert cli.main([str(word) for word in again]) == 0
    assert "LLTM(64, 16)" in capsys.readouterr().out


def test_one_is_told_as_one(run, story):
    story.write_text("a" * 2000, encoding="utf-8")
    output = run("--steps", "1")[1]
    assert ": 2,000 characters, an alphabet of 1;" in output
    assert re.search(r"^before .* after 0 steps\nafter .* after 1 step$", output, re.MULTILINE)
    trainer = types.SimpleNamespace(characters=16, seconds=16.0)
    told = "16.0 s, 1 character a second (1 sample, each a window of 1)"
    assert speed_of(trainer, 1) == told


def test_threads_are_given_back(run):
    before = torch.get_num_threads()
    run("--steps", 0, "--threads", before + 1)
    assert torch.get_num_threads() == before


# The parts.


def test_windows_go_on_from_one_to_the_next():
    codes = torch.arange(23)
    pieces = text.windows(codes, batch=2, window=4)
    assert [inputs.shape for inputs, _ in pieces] == [(4, 2), (4, 2), (3, 2)]
    inputs = torch.cat([inputs for inputs, _ in pieces])
    assert inputs.t().tolist() == [list(range(11)), list(range(11, 22))]
    for inputs, targets in pieces:
        assert torch.equal(targets, inputs + 1)


def test_bits_of_a_model_that_knows_nothing():
    blank = model.CharacterModel(8, 4)
    for parameter in blank.readout.parameters():
        torch.nn.init.zeros_(parameter)
    assert model.bits_per_character(blank, torch.arange(100) % 8, 5) == pytest.approx(3)


def test_demo_is_a_command():
    assert cli.COMMANDS["demo"][0] is demo

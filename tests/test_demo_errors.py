"""What a user can do wrong with the demo: one line, exit code 2, and nothing is lost."""

import os
import re
import threading

import pytest
import torch
from test_cli import fails

from lltm_decoupled import cli
from lltm_decoupled.demo import checkpoint, options

SIZES = ["--hidden", "16", "--batch", "4", "--window", "8", "--device", "cpu"]
STORY = "The quick brown fox jumps over the lazy dog, and the dog sleeps on.\n" * 30
LATIN_1 = "Stra\u00dfe ".encode("latin-1") * 200


@pytest.fixture
def story(tmp_path):
    path = tmp_path / "story.txt"
    path.write_text(STORY, encoding="utf-8")
    return path


@pytest.fixture
def saved(story, tmp_path, capsys):
    """A checkpoint of one step on the story."""
    path = tmp_path / "saved.pt"
    arguments = ["demo", "--text", str(story), "--steps", "1", "--save", str(path), *SIZES]
    assert cli.main(arguments) == 0
    capsys.readouterr()
    return path


@pytest.mark.parametrize(
    "contents, words",
    [
        (None, "cannot read"),
        (b"", "too short: 0 characters, while a batch of 4 windows of 8 needs 40;"),
        (b"a", "too short: 1 character, while"),
        (b"a short text", "too short: 12 characters, while"),
        (LATIN_1, "not utf-8 text"),
    ],
    ids=["missing", "empty", "one", "short", "undecodable"],
)
def test_bad_text(tmp_path, capsys, contents, words):
    path = tmp_path / "text.txt"
    if contents is not None:
        path.write_bytes(contents)
    assert words in fails(capsys, "demo", "--text", path, *SIZES)


def test_a_text_that_is_a_device(capsys):
    for path in ("/dev/zero", "/dev/full"):
        if os.path.exists(path):
            assert f"cannot read {path}: it is a device" in fails(capsys, "demo", "--text", path)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no FIFOs")
def test_a_text_that_comes_through_a_pipe(story):
    path = story.with_name("pipe")
    os.mkfifo(str(path))
    writer = threading.Thread(target=path.write_text, args=(STORY,))
    writer.start()
    assert cli.main(["demo", "--text", str(path), "--steps", "1", *SIZES]) == 0
    writer.join()


def test_a_batch_of_one_window(tmp_path, capsys):
    path = tmp_path / "text.txt"
    path.write_bytes(b"a short text")
    line = fails(capsys, "demo", "--text", path, *SIZES, "--batch", 1)
    assert "12 characters, while a batch of 1 window of 8 needs 40;" in line


def test_another_encoding(tmp_path, capsys):
    path = tmp_path / "text.txt"
    path.write_bytes(LATIN_1)
    arguments = ["demo", "--text", str(path), "--steps", "1", *SIZES, "--encoding"]
    assert cli.main([*arguments, "latin-1"]) == 0
    assert "unknown encoding 'klingon'" in fails(capsys, *arguments, "klingon")


def test_the_shortest_text_works(tmp_path, capsys):
    path = tmp_path / "text.txt"
    arguments = ["demo", "--text", str(path), "--steps", "2", *SIZES]
    path.write_text("ab", encoding="utf-8")
    needed = int(re.search(r"needs (\d+)", fails(capsys, *arguments)).group(1))
    path.write_text("a" * (needed - 1), encoding="utf-8")
    fails(capsys, *arguments)
    path.write_text("a" * needed, encoding="utf-8")
    assert cli.main(arguments) == 0


@pytest.mark.parametrize(
    "option, value",
    [
        ("--hidden", "0"),
        ("--batch", "-1"),
        ("--window", "0"),
        ("--window", "2.5"),
        ("--steps", "-1"),
        ("--sample", "many"),
        ("--seconds", "0"),
        ("--seconds", "nan"),
        ("--lr", "-1"),
        ("--lr", "inf"),
        ("--lr", "1e38"),
        ("--threads", "0"),
    ],
)
def test_bad_numbers(capsys, option, value):
    line = fails(capsys, "demo", option, value)
    assert option in line and value in line


@pytest.mark.parametrize("name", ["abacus", "cuda:99", "meta"])
def test_bad_devices(capsys, name):
    assert f"cannot use device {name!r}: " in fails(capsys, "demo", "--device", name)


def test_cuda_without_kernels(capsys, monkeypatch):
    monkeypatch.setattr(options.lltm_decoupled, "build_info", lambda: {"cuda": False})
    monkeypatch.setattr(torch, "zeros", lambda *size, device: torch.ones(1))
    assert "has no CUDA" in fails(capsys, "demo", "--device", "cuda")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert options.pick_device().type == "cpu"


@pytest.mark.parametrize(
    "contents",
    [None, b"", b"hello", {"a": 1}, [1], {"format": "other"}, {"format": checkpoint.FORMAT}],
    ids=["missing", "empty", "text", "dict", "list", "other format", "part"],
)
def test_bad_checkpoints(story, tmp_path, capsys, contents):
    path = tmp_path / "a.pt"
    if isinstance(contents, bytes):
        path.write_bytes(contents)
    elif contents is not None:
        torch.save(contents, str(path))
    assert str(path) in fails(capsys, "demo", "--text", story, "--load", path, *SIZES)


def test_a_truncated_checkpoint(story, saved, capsys):
    saved.write_bytes(saved.read_bytes()[:1000])
    assert "is no checkpoint" in fails(capsys, "demo", "--text", story, "--load", saved)


def test_a_checkpoint_of_another_size(story, saved, capsys):
    line = fails(capsys, "demo", "--text", story, "--load", saved, "--hidden", 17)
    assert "--hidden 16, not 17" in line


def test_a_checkpoint_whose_weights_do_not_fit(story, saved, capsys):
    contents = checkpoint.load(str(saved))
    contents["settings"]["hidden"] = 17
    torch.save(contents, str(saved))
    assert "does not fit" in fails(capsys, "demo", "--text", story, "--load", saved)


def test_a_checkpoint_of_another_alphabet(story, saved, capsys):
    for foreign, words in (("\u00e6", "1 character that"), ("\u00e6\u00e7", "2 characters that")):
        story.write_text(STORY + foreign, encoding="utf-8")
        line = fails(capsys, "demo", "--text", story, "--load", saved)
        assert words in line and "'\u00e6'" in line


def test_a_place_that_cannot_be_saved_to_is_told_before_training(story, tmp_path, capsys):
    for place in (tmp_path / "nowhere" / "a.pt", tmp_path):
        line = fails(capsys, "demo", "--text", story, "--seconds", 1e6, "--save", place)
        assert "cannot save" in line


def test_a_failed_save_leaves_the_old_checkpoint(story, saved, monkeypatch, capsys):
    def full(contents, file):
        file.write(b"half")
        raise OSError("No space left on device")

    monkeypatch.setattr(torch, "save", full)
    before, files = saved.read_bytes(), sorted(os.listdir(str(saved.parent)))
    line = fails(capsys, "demo", "--text", story, "--steps", 1, "--load", saved, "--save", saved)
    assert "No space left on device" in line
    assert saved.read_bytes() == before
    assert sorted(os.listdir(str(saved.parent))) == files


def test_a_diverged_training_is_not_saved(story, saved, capsys):
    before = saved.read_bytes()
    arguments = ["demo", "--text", story, "--steps", 5, "--lr", 1e30, *SIZES]
    line = fails(capsys, *arguments, "--save", saved)
    assert "diverged" in line and "--lr" in line
    assert saved.read_bytes() == before


@pytest.mark.parametrize("option", ["--save", "--metrics"])
def test_inputs_are_not_overwritten(story, saved, capsys, option):
    for path in (story, story.parent / "." / story.name):
        line = fails(capsys, "demo", "--text", story, option, path, "--steps", 1, *SIZES)
        assert f"{option} {path} would overwrite the text" in line
    assert story.read_text(encoding="utf-8") == STORY
    kept = story.with_name("x.previous")
    kept.write_bytes(story.read_bytes())
    line = fails(capsys, "demo", "--text", kept, "--save", story.with_name("x"), *SIZES)
    assert "would overwrite the text" in line
    before = saved.read_bytes()
    line = fails(capsys, "demo", "--text", story, "--load", saved, "--metrics", saved)
    assert "would overwrite the checkpoint" in line
    assert saved.read_bytes() == before


@pytest.mark.parametrize("option", ["--save", "--metrics"])
def test_a_file_of_another_kind_is_not_overwritten(story, capsys, option):
    path = story.with_name("thesis.txt")
    path.write_text("years of work", encoding="utf-8")
    line = fails(capsys, "demo", "--text", story, option, path, "--steps", 1, *SIZES)
    assert f"cannot save {path}: it is there and is no" in line
    assert path.read_text(encoding="utf-8") == "years of work"


def test_files_of_its_own_kind_are_overwritten(story, saved, capsys):
    metrics = story.with_name("m.jsonl")
    metrics.touch()
    for _ in range(2):
        arguments = ["--text", str(story), "--save", str(saved), "--metrics", str(metrics)]
        assert cli.main(["demo", *arguments, "--steps", "1", *SIZES]) == 0


@pytest.mark.parametrize("command", ["demo", "bench"])
def test_more_threads_than_anyone_has(capsys, command):
    assert "--threads: 100000 is more than" in fails(capsys, command, "--threads", 100000)


def test_numbers_that_are_too_large(story, capsys):
    line = fails(capsys, "demo", "--seed", 2**64)
    assert f"--seed: {2**64} is more than {2**64 - 1}" in line
    line = fails(capsys, "demo", "--text", story, *SIZES, "--hidden", 10**8, "--steps", 1)
    assert "--hidden 100000000" in line and "memory" in line
    line = fails(capsys, "demo", "--text", story, "--hidden", 10**11, "--steps", 1)
    assert "--hidden 100000000000" in line and "memory" in line


@pytest.mark.parametrize("option", ["--text", "--save", "--load", "--metrics", "--plot"])
def test_an_empty_name_of_a_file(capsys, option):
    assert f"{option}: the name of the file is empty" in fails(capsys, "demo", option, "")

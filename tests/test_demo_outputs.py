"""What the demo writes: never over another file, each output its own, and errors in writing."""

import os

import pytest
from test_cli import fails
from test_demo_errors import SIZES, saved, story

from lltm_decoupled import cli
from lltm_decoupled.demo import checkpoint, curve

__all__ = ["saved", "story"]  # fixtures
WORK = "years of work"


def words(story, *more):
    return [str(word) for word in ["demo", "--text", story, "--steps", 2, *SIZES, *more]]


def other_file(path):
    path.write_text(WORK, encoding="utf-8")
    return path


@pytest.mark.parametrize("end", [".previous", ".tmp"])
@pytest.mark.parametrize("resume", [[], ["--resume"]], ids=["new", "resumed"])
def test_a_file_beside_the_checkpoint_is_not_overwritten(story, saved, capsys, end, resume):
    other = other_file(saved.with_name(saved.name + end))
    line = fails(capsys, *words(story, "--save", saved, "--save-every", 1, *resume))
    assert f"cannot save {other}: it is there and is no" in line
    assert other.read_text(encoding="utf-8") == WORK


def test_a_file_beside_the_metrics_is_not_overwritten(story, capsys):
    other = other_file(story.with_name("m.jsonl.tmp"))
    line = fails(capsys, *words(story, "--metrics", story.with_name("m.jsonl")))
    assert f"cannot save {other}: it is there and is no" in line
    assert other.read_text(encoding="utf-8") == WORK


def test_what_a_killed_save_left_is_overwritten(story, saved):
    for path, part in ((saved, saved.read_bytes()[:1000]), (story.with_name("m"), b'{"step')):
        path.with_name(path.name + ".tmp").write_bytes(part)
    assert cli.main(words(story, "--save", saved, "--metrics", story.with_name("m"))) == 0
    assert sorted(os.listdir(str(story.parent))) == [
        "m",
        "saved.pt",
        "saved.pt.previous",
        story.name,
    ]


def test_a_checkpoint_of_another_program_is_not_overwritten(story, capsys):
    path = story.with_name("weights.pt")
    checkpoint.torch.save({"a": 1}, str(path))
    before = path.read_bytes()
    assert "it is there and is no checkpoint" in fails(capsys, *words(story, "--save", path))
    assert path.read_bytes() == before


@pytest.mark.parametrize("end", ["", ".previous", ".damaged", ".tmp"])
@pytest.mark.parametrize("option", ["--metrics", "--plot", "--load"])
def test_each_output_is_a_file_of_its_own(story, capsys, option, end):
    if option == "--load" and not end:
        return  # a training may be saved where it came from
    path = story.with_name("c.pt")
    other = os.path.join(str(story.parent), ".", f"c.pt{end}")
    line = fails(capsys, *words(story, "--save", path, option, other))
    assert "need a file each" in line and "--save" in line and option in line
    assert os.listdir(str(story.parent)) == [story.name]


@pytest.mark.parametrize("end", [".previous", ".damaged"])
def test_the_text_is_not_beside_the_checkpoint(story, capsys, end):
    path = story.with_name("c.pt")
    text = story.with_name("c.pt" + end)
    story.rename(text)
    line = fails(capsys, *words(text, "--save", path))
    assert "would overwrite the text" in line and "need a file each" in line


def test_the_name_of_the_next_damaged_checkpoint_is_taken(story, saved, capsys):
    other_file(saved.with_name("saved.pt.damaged"))
    line = fails(capsys, *words(story, "--save", saved, "--metrics", f"{saved}.damaged.1"))
    assert "need a file each" in line


def test_metrics_and_plot_are_apart(story, capsys):
    m = story.with_name("m")
    assert "need a file each" in fails(capsys, *words(story, "--metrics", m, "--plot", f"{m}.tmp"))


@pytest.mark.parametrize("name", ["keep.png", "keep.svg", "keep.pdf"])
def test_a_plot_replaces_pictures_only(story, capsys, name):
    pytest.importorskip("matplotlib")
    path = other_file(story.with_name(name))
    line = fails(capsys, *words(story, "--plot", path))
    assert f"cannot save {path}: it is there and is no picture" in line
    assert path.read_text(encoding="utf-8") == WORK
    path.write_text("<?xml version='1.0'?><letter/>", encoding="utf-8")
    assert "is no picture" in fails(capsys, *words(story, "--plot", path))
    path.unlink()
    for _ in range(2):
        assert cli.main(words(story, "--plot", path)) == 0


@pytest.mark.parametrize("name", ["x.gif", "x.jpg", "x.txt", "x", ".png"])
def test_a_plot_is_of_the_kinds_that_help_names(story, capsys, name):
    pytest.importorskip("matplotlib")
    path = story.with_name(name)
    line = fails(capsys, *words(story, "--plot", path))
    assert f"cannot draw {path}: its name has to end in .png, .svg or .pdf" in line


def test_a_damaged_checkpoint_is_kept_beside_another_file(story, saved):
    assert cli.main(words(story, "--save", saved)) == 0  # the one before is there
    others = [other_file(saved.with_name(saved.name + end)) for end in (".damaged", ".damaged.1")]
    saved.write_bytes(b"torn")
    assert cli.main(words(story, "--save", saved, "--resume")) == 0
    assert [other.read_text(encoding="utf-8") for other in others] == [WORK] * 2
    assert saved.with_name("saved.pt.damaged.2").read_bytes() == b"torn"
    assert checkpoint.load(str(saved))["step"] == 2


class Full:
    """A file whose disk becomes full; closing it tries once more, as Python's does."""

    def __init__(self, lines):
        self.left = lines

    def write(self, line):
        self.left -= 1
        self.close()

    def close(self):
        if self.left < 0:
            raise OSError(28, "No space left on device")


@pytest.mark.parametrize("lines", [0, 3])
def test_metrics_on_a_full_disk_leave_the_checkpoint(story, capsys, monkeypatch, lines):
    monkeypatch.setattr(curve, "_open", lambda path, updates: Full(lines))
    path, metrics = story.with_name("c.pt"), story.with_name("m")
    line = fails(capsys, *words(story, "--save", path, "--metrics", metrics, "--steps", 50))
    assert f"cannot write {metrics}: No space left on device" in line
    assert checkpoint.load(str(path))["step"] == lines + 2, "ended, as by Ctrl-C, with the next one"


def test_metrics_that_cannot_be_begun_leave_no_part(story, capsys, monkeypatch):
    def full(source, target):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(curve.os, "replace", full)
    line = fails(capsys, *words(story, "--metrics", story.with_name("m")))
    assert "No space left on device" in line and os.listdir(str(story.parent)) == [story.name]


def test_a_plot_on_a_full_disk(story, capsys, monkeypatch):
    pytest.importorskip("matplotlib")
    from matplotlib.figure import Figure

    def full(self, path, **options):
        raise OSError("encoder error -2 when writing image file")  # as pillow says it

    monkeypatch.setattr(Figure, "savefig", full)
    path = story.with_name("c.pt")
    line = fails(capsys, *words(story, "--plot", story.with_name("p.png"), "--save", path))
    assert "p.png: encoder error -2" in line and checkpoint.load(str(path))["step"] == 2


def test_a_link_to_a_checkpoint_stays_a_link(story, saved):
    link = story.with_name("latest.pt")
    link.symlink_to(saved.name)
    assert cli.main(words(story, "--save", link, "--save-every", 1)) == 0
    assert link.is_symlink() and checkpoint.load(str(saved))["step"] == 2
    assert not story.with_name("latest.pt.previous").exists()


def test_a_checkpoint_that_a_full_disk_took_in_part(story, saved, capsys, monkeypatch):
    def full(contents, file):
        file.write(b"PK half")
        raise RuntimeError("[enforce fail at inline_container.cc:672] . unexpected pos 2 vs 1")

    monkeypatch.setattr(checkpoint.torch, "save", full)
    before = saved.read_bytes()
    line = fails(capsys, *words(story, "--save", saved))
    assert f"cannot save {saved}: the disk took a part of it" in line
    assert saved.read_bytes() == before

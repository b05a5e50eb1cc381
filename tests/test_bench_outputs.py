"""What `bench` writes: over no other file, each output its own, and one line on a full disk."""

import csv
import errno
import json
import os

import pytest
from test_bench import TINY, bench
from test_cli import fails

from lltm_decoupled import cli
from lltm_decoupled.bench import stages

WORK = "years of work"
SMALL = ["--what", "cell", "--contenders", "plain", "--passes", "inference"]
SIZES = ["--sizes", "2x4x4", "2x8x8"]


@pytest.fixture
def unmeasured(monkeypatch):
    """A mistake is told before anything is measured."""
    monkeypatch.setattr(cli.bench, "benchmark", None)


def fails_at_once(capsys, *more):
    pytest.importorskip("matplotlib")
    return fails(capsys, *TINY, *SMALL, *more)


@pytest.mark.parametrize("contents", [WORK, "{}", '{"machine": 1}', "a,b\n1,2\n", "<?xml?>"])
@pytest.mark.parametrize("option", ["--json", "--csv", "--plot"])
def test_a_file_of_another_kind_is_not_overwritten(unmeasured, capsys, tmp_path, option, contents):
    path = tmp_path / "thesis.png"
    path.write_text(contents, encoding="utf-8")
    line = fails_at_once(capsys, option, path)
    assert f"cannot save {path}: it is there and is no" in line
    assert path.read_text(encoding="utf-8") == contents


@pytest.mark.parametrize("option", ["--json", "--csv"])
def test_the_stages_overwrite_no_other_file_either(capsys, tmp_path, option):
    path = tmp_path / "thesis"
    path.write_text(WORK, encoding="utf-8")
    line = fails(capsys, "bench", "--stages", "--device", "cpu", option, path)
    assert "it is there and is no" in line and path.read_text(encoding="utf-8") == WORK
    line = fails(capsys, "bench", "--stages", "--json", path, "--csv", path)
    assert "need a file each" in line


def test_files_of_its_own_kind_are_overwritten(tmp_path):
    pytest.importorskip("matplotlib")
    files = tmp_path / "a.json", tmp_path / "a.csv", tmp_path / "a.png"
    for path in files:
        path.touch()
    for _ in range(2):
        words = "--json", files[0], "--csv", files[1], "--plot", files[2]
        assert bench(*SMALL, *SIZES, *words) == 0
    assert json.loads(files[0].read_text(encoding="utf-8"))["rows"]
    assert files[1].read_text(encoding="utf-8").startswith("device,torch,")


def test_what_the_stages_write_is_of_the_same_kinds(tmp_path, monkeypatch):
    monkeypatch.setattr(stages, "STAGES", {"Python": stages.STAGES["Python"]})
    files = tmp_path / "a.json", tmp_path / "a.csv"
    for _ in range(2):
        words = "--sizes", "2x4x4", "--turns", "1", "--json", files[0], "--csv", files[1]
        assert cli.main(["bench", "--stages", "--device", "cpu", *map(str, words)]) == 0


@pytest.mark.parametrize(
    "one, other", [("--json", "--csv"), ("--json", "--plot"), ("--csv", "--plot")]
)
def test_each_output_is_a_file_of_its_own(unmeasured, capsys, tmp_path, one, other):
    words = one, tmp_path / "a.png", other, f"{tmp_path}/./a.png"
    line = fails_at_once(capsys, *words)
    assert f"{one} and {other} need a file each" in line
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("option", ["--json", "--csv", "--plot"])
def test_an_empty_name_of_a_file(capsys, option):
    assert f"{option}: the name of the file is empty" in fails(capsys, *TINY, option, "")


def fill_the_disk(monkeypatch, option):
    """Of what the option writes the disk takes a part."""

    def full(*arguments, **options):
        for file in arguments:
            if hasattr(file, "write"):
                file.write("part")
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    from matplotlib.figure import Figure

    writer = {
        "--json": (json, "dump"),
        "--csv": (csv.DictWriter, "writerows"),
        "--plot": (Figure, "savefig"),
    }
    monkeypatch.setattr(*writer[option], full)


@pytest.mark.parametrize("option", ["--json", "--csv", "--plot"])
def test_a_full_disk_leaves_what_was_there(capsys, tmp_path, monkeypatch, option):
    pytest.importorskip("matplotlib")
    files = {
        "--json": tmp_path / "a.json",
        "--csv": tmp_path / "a.csv",
        "--plot": tmp_path / "a.png",
    }
    words = [word for pair in files.items() for word in pair]
    assert bench(*SMALL, *SIZES, *words) == 0
    before = {path: path.read_bytes() for path in files.values()}
    with monkeypatch.context() as context:
        fill_the_disk(context, option)
        line = fails(capsys, *TINY, *SMALL, *SIZES, *words)
    full = files[option]
    assert f"cannot write {full}: {os.strerror(errno.ENOSPC)}" in line
    after = {path: path.read_bytes() for path in files.values()}
    assert after[full] == before[full] and sorted(tmp_path.iterdir()) == sorted(after)
    for path in files.values():
        # a plot is drawn first or last, and a full disk for it may end the command
        assert path == full or path.suffix == ".png" or after[path] != before[path]


@pytest.mark.parametrize("option", ["--json", "--csv", "--plot"])
def test_a_name_that_no_file_can_have(unmeasured, capsys, tmp_path, option):
    path = tmp_path / ("x" * 300 + ".png")
    assert "cannot save" in fails_at_once(capsys, option, path)


def test_a_link_stays_a_link(tmp_path):
    link, target = tmp_path / "latest.json", tmp_path / "run7.json"
    link.symlink_to(target.name)
    assert bench(*SMALL, *SIZES, "--json", link) == 0
    assert link.is_symlink() and json.loads(target.read_text(encoding="utf-8"))["rows"]

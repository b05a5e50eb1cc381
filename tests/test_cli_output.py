"""The command line where its output cannot be written: on a full disk, to a closed stream."""

import os
import subprocess
import sys

import pytest
from process_helpers import environment

from lltm_decoupled import cli

pytestmark = pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full")

SMALL = {
    "info": [],
    "check": ["--device", "cpu", "--dtype", "float64"],
    "demo": ["--steps", "1", "--hidden", "8", "--device", "cpu", "--sample", "0"],
    "bench": ["--device", "cpu", "--what", "cell", "--sizes", "2x2x2", "--turns", "1"],
}
SMALL["bench"] += ["--contenders", "plain"]


LONG = """
import sys
from lltm_decoupled import cli, info

info.as_text = lambda facts: "x" * 100000
sys.exit(cli.main(["info"]))
"""


def in_shell(redirection, *words, start="-m lltm_decoupled"):
    """Run the command line with a redirection of the shell: (exit code, stdout, stderr)."""
    line = f'exec "$0" {start} "$@" {redirection}'
    command = ["sh", "-c", line, sys.executable, *words]
    pipe = subprocess.PIPE
    done = subprocess.run(command, env=environment(), stdout=pipe, stderr=pipe)
    return done.returncode, done.stdout.decode(), done.stderr.decode()


@pytest.fixture
def story(tmp_path):
    path = tmp_path / "story.txt"
    path.write_text("The dog sleeps on.\n" * 100, encoding="utf-8")
    return ["--text", str(path)]


def words_of(command, story):
    return [command, *SMALL[command], *(story if command == "demo" else [])]


@pytest.mark.parametrize("command", cli.COMMANDS)
def test_a_full_disk_is_told_in_one_line(command, story):
    code, _, told = in_shell(">/dev/full", *words_of(command, story))
    prog = f"python -m lltm_decoupled {command}"
    assert told == f"{prog}: error: cannot write the output: No space left on device\n"
    assert code == 2


@pytest.mark.parametrize("words", [["--version"], ["--help"], ["demo", "--help"]], ids=" ".join)
def test_a_full_disk_for_help(words):
    code, _, told = in_shell(">/dev/full", *words)
    assert code == 2 and told.endswith("cannot write the output: No space left on device\n")
    assert told.count("\n") == 1


def test_a_full_disk_for_a_long_text():
    """More than Python's buffer: nothing of it is left there to fail once more."""
    code, _, told = in_shell(">/dev/full", LONG, start="-c")
    assert code == 2 and told.count("\n") == 1


@pytest.mark.parametrize("command", cli.COMMANDS)
def test_a_closed_stdout_is_quiet(command, story):
    assert in_shell(">&-", *words_of(command, story)) == (0, "", "")


def test_a_closed_stderr_is_quiet(story):
    code, printed, _ = in_shell("2>&-", *words_of("demo", story))
    assert code == 0 and "after 1 step" in printed
    code, printed, _ = in_shell("2>&-", "demo", "--fly")
    assert code == 2 and printed == ""


@pytest.mark.parametrize("words, expected", [(["info"], 0), (["demo", "--fly"], 2)])
def test_a_full_disk_for_stderr(words, expected):
    code, _, _ = in_shell("2>/dev/full", *words)
    assert code == expected


def test_a_full_disk_for_a_warning():
    warned = "import sys, warnings; warnings.warn(str()); from lltm_decoupled import cli"
    code, printed, _ = in_shell("2>/dev/full", "info", start=f"-c '{warned}; sys.exit(cli.main())'")
    assert code == 0 and "lltm_decoupled" in printed


def test_an_error_of_another_file_is_no_error_of_the_output(monkeypatch):
    def run(args):
        raise OSError(28, "No space left on device", "elsewhere")

    monkeypatch.setattr(cli.info, "run", run)
    with pytest.raises(OSError, match="elsewhere"):
        cli.main(["info"])

"""The demo in several processes: the curve of one, through kills, and mistakes told once."""

import json
import signal
from pathlib import Path

import pytest
import torch
from process_helpers import DIES, FULL_DISK, ONE_MISTAKE, THREADS, start, torchrun
from torch import distributed as torch_distributed

from lltm_decoupled import cli
from lltm_decoupled.demo import checkpoint, distributed

pytestmark = pytest.mark.skipif(
    not torch_distributed.is_available(), reason="this torch has no torch.distributed"
)
needs_sigkill = pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="no SIGKILL here")

STORY = "The quick brown fox jumps over the lazy dog, and the dog sleeps on.\n" * 30
STEPS = 60
# Five rows: two processes get two and three, three processes one, two and two.
SIZES = ["--hidden", 16, "--batch", 5, "--window", 8, "--device", "cpu", "--sample", 0]
# Sums in another order differ by float32 roundings, 1e-7 each; the updates carry them on.
CLOSE = {"rtol": 1e-4, "atol": 1e-5}


def losses(path):
    """The losses of steps 1, 2, ...: each step once, in order."""
    updates = [json.loads(line) for line in path.read_text().splitlines()]
    assert [update["step"] for update in updates] == list(range(1, len(updates) + 1))
    assert all(a["seconds"] <= b["seconds"] for a, b in zip(updates, updates[1:]))
    return torch.tensor([update["loss"] for update in updates], dtype=torch.float64)


def assert_same_training(one, other):
    """The curves agree, and so does all that the checkpoints keep for going on."""
    torch.testing.assert_close(losses(one / "curve"), losses(other / "curve"), **CLOSE)
    one, other = (checkpoint.load(str(folder / "last.pt")) for folder in (one, other))
    assert one["step"] == other["step"] == STEPS
    for name, weight in one["model"].items():
        torch.testing.assert_close(weight, other["model"][name], rtol=1e-3, atol=1e-4)
    for part, other_part in zip(one["state"], other["state"]):
        torch.testing.assert_close(part, other_part, rtol=1e-3, atol=1e-4)


def demo(folder, *more):
    """The words of the command: the same for every number of processes."""
    files = ["--save", folder / "last.pt", "--save-every", 20, "--metrics", folder / "curve"]
    words = ["demo", "--text", folder.parent / "story.txt", "--steps", STEPS, *SIZES, *files]
    return [str(word) for word in [*words, *more]]


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    """The folder of a training by one process that nothing stopped."""
    folder = tmp_path_factory.mktemp("demo") / "alone"
    folder.mkdir()
    (folder.parent / "story.txt").write_text(STORY, encoding="utf-8")
    assert cli.main(demo(folder)) == 0
    return folder


@pytest.fixture
def folder(alone, request):
    folder = alone.parent / request.node.name
    folder.mkdir()
    return folder


def test_two_processes_give_the_curve_of_one(alone, folder):
    code, output = torchrun(2, "-m", "lltm_decoupled", *demo(folder))
    assert code == 0
    assert output.count("bits per held-out character") == 2, "before and after, once each"
    assert "processes  2" in output and "agrees" in output
    assert_same_training(alone, folder)
    assert '"processes": 2' in (folder / "curve").read_text()


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="no list of threads here")
@pytest.mark.parametrize("words, expected", [([], 0), (["--lr", "1e30"], 2)], ids=["ends", "fails"])
def test_no_thread_outlives_the_processes_group(alone, folder, words, expected):
    script = folder / "threads.py"
    script.write_text(THREADS)
    ends = start(2, script, *demo(folder, *words))
    assert [code for code, _ in ends] == [expected] * 2, ends


@needs_sigkill
def test_a_killed_process_and_the_restart_lose_nothing(alone, folder):
    """torchrun starts all processes again, with the same words."""
    script, marker = folder / "dies.py", folder / "died"
    script.write_text(DIES)
    dies = [script, "update", 1, 33, marker]
    code, output = torchrun(2, *dies, *demo(folder, "--resume"), options=["--max_restarts=1"])
    assert marker.exists() and code == 0
    assert "nothing in" in output and "after 20 steps" in output
    assert_same_training(alone, folder)


@needs_sigkill
def test_killed_while_saving_and_resumed_by_another_number(alone, folder, capsys):
    script, marker = folder / "dies.py", folder / "died"
    script.write_text(DIES)
    ends = start(3, script, "save", 0, 2, marker, *demo(folder))
    assert marker.exists() and ends[0][0] == -signal.SIGKILL
    assert all(code != 0 for code, _ in ends), "nobody waits for the dead"
    assert len(losses(folder / "curve")) == 40
    assert checkpoint.load(str(folder / "last.pt"))["step"] == 20
    capsys.readouterr()
    assert cli.main(demo(folder, "--resume")) == 0
    assert "after 20 steps" in capsys.readouterr().out
    assert_same_training(alone, folder)
    assert sorted(path.name for path in folder.glob("*.tmp")) == []


@pytest.mark.parametrize(
    "words, told",
    [
        (["--steps", "few"], "--steps"),
        (["--batch", 1], "a batch of 1 has no row for each of 2 processes"),
        (["--load", "nowhere.pt"], "cannot load nowhere.pt"),
        (None, "no such device"),
    ],
    ids=["option", "rows", "checkpoint", "one of them"],
)
def test_a_mistake_is_told_once_and_ends_all(alone, tmp_path, words, told):
    command = ["-m", "lltm_decoupled"]
    if words is None:
        (tmp_path / "mistake.py").write_text(ONE_MISTAKE)
        command, words = [tmp_path / "mistake.py"], []
    ends = start(2, *command, *demo(alone)[:-4], *words)
    assert [code for code, _ in ends] == [2, 2]
    (_, line), (_, silence) = ends
    assert told in line and line.count("\n") == 1 and silence == ""


def test_a_full_disk_ends_all_and_loses_no_update(alone, folder):
    script = folder / "full.py"
    script.write_text(FULL_DISK)
    (code, line), (other_code, silence) = start(2, script, *demo(folder))
    assert (code, other_code, silence) == (2, 2, ""), line
    assert "No space left on device" in line and line.count("\n") == 1
    assert checkpoint.load(str(folder / "last.pt"))["step"] == 2


@pytest.fixture
def third_of_four(monkeypatch):
    for name, value in dict(RANK=2, WORLD_SIZE=4, LOCAL_RANK=2, LOCAL_WORLD_SIZE=4).items():
        monkeypatch.setenv(name, str(value))
    monkeypatch.setenv("MASTER_ADDR", "127.0.0.1")
    monkeypatch.setenv("MASTER_PORT", "1")


def test_each_process_takes_a_gpu_of_its_own(third_of_four, monkeypatch):
    taken = []
    monkeypatch.setattr(torch.cuda, "set_device", taken.append)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 4)
    assert distributed.own_gpu("cuda") == "cuda:2" and taken == [2]
    with pytest.raises(cli.UserError, match="--device cuda, not cuda:1"):
        distributed.own_gpu("cuda:1")
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 3)
    with pytest.raises(cli.UserError, match="4 processes on this machine, but 3 GPUs:"):
        distributed.own_gpu("cuda")
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    with pytest.raises(cli.UserError, match="4 processes on this machine, but 1 GPU:"):
        distributed.own_gpu("cuda")
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "1")  # the others are on other machines
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 0)
    with pytest.raises(cli.UserError, match="1 process on this machine, but 0 GPUs:"):
        distributed.own_gpu("cuda")


def test_rows_are_shared_out(monkeypatch):
    for batch, count in ((4, 4), (5, 2), (7, 3), (32, 5)):
        monkeypatch.setattr(distributed, "count", lambda count=count: count)
        shares = []
        for rank in range(count):
            monkeypatch.setattr(distributed, "rank", lambda rank=rank: rank)
            shares.append(list(range(batch))[distributed.rows(batch)])
        assert sum(shares, []) == list(range(batch))
        assert max(map(len, shares)) - min(map(len, shares)) <= 1

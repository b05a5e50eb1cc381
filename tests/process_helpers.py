"""Starting the demo in several processes, by torchrun or by hand, and processes that go wrong."""

import gc
import importlib
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from torch import distributed

import lltm_decoupled

PATIENCE = 200  # seconds, for a busy machine; an idle one needs ten

# Runs the command line, but dies as if by `kill -9`: once, in an update or half-way through a save.
DIES = """
import os, signal, sys
import torch
from lltm_decoupled import cli
from lltm_decoupled.demo import training

moment, rank, when, marker = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4]
rate, save, saves = training.Trainer.rate, torch.save, []

def die():
    open(marker, "w").close()
    os.kill(os.getpid(), signal.SIGKILL)

def dying_rate(self):
    return die() if self.step == when else rate(self)

def dying_save(contents, file, **options):
    saves.extend(["a checkpoint"] if isinstance(contents, dict) else [])
    if len(saves) < when:
        return save(contents, file, **options)
    file.write(b"PK: half of it")
    file.flush()
    die()

if os.environ["RANK"] == rank and not os.path.exists(marker):
    if moment == "update":
        training.Trainer.rate = dying_rate
    else:
        torch.save = dying_save
sys.exit(cli.main(sys.argv[5:]))
"""

# One process can't use its device, which the others can't know.
ONE_MISTAKE = """
import os, sys
from lltm_decoupled import cli, demo

def pick_device(name):
    raise cli.UserError("no such device")

if os.environ["RANK"] == "1":
    demo.pick_device = pick_device
sys.exit(cli.main(sys.argv[1:]))
"""

# The first process's disk becomes full, which the others can't know.
FULL_DISK = """
import sys
from lltm_decoupled import cli
from lltm_decoupled.demo import curve

class Full:
    def write(self, line):
        raise OSError(28, "No space left on device")

    def close(self):
        pass

curve._open = lambda path, updates: Full()
sys.exit(cli.main(sys.argv[1:]))
"""


# Whether threads of the group outlive it, which may abort the process at its end; by their names,
# which are those of torch on Linux.
THREADS = """
import os, sys
from lltm_decoupled import cli

code = cli.main(sys.argv[1:])
tasks = "/proc/self/task"
names = [open(f"{tasks}/{task}/comm").read() for task in os.listdir(tasks)]
sys.exit(100 if any("gloo" in name for name in names) else code)
"""


def join_group(backend, folder, rank, count):
    """Begin what leave_group ends, threads included: as lltm_decoupled.demo.distributed does it."""
    importlib.import_module("torch.distributed.nn.functional")
    meet = (folder / "meet").as_uri()
    distributed.init_process_group(backend, init_method=meet, rank=rank, world_size=count)


def leave_group():
    """To be called when nothing refers to a replica of a model any more."""
    gc.collect()
    distributed.destroy_process_group()


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return str(probe.getsockname()[1])


def environment(**more):
    """This process's, for one that finds the package, and buffers its streams as by default."""
    path = [str(Path(lltm_decoupled.__file__).parent.parent), os.environ.get("PYTHONPATH", "")]
    inherited = {name: os.environ[name] for name in os.environ if name != "PYTHONUNBUFFERED"}
    return dict(inherited, PYTHONPATH=os.pathsep.join(filter(None, path)), **more)


def torchrun(count, *command, options=()):
    """Run the command in ``count`` processes; return the exit code and standard output."""
    words = [f"--nproc_per_node={count}", "--master_addr=127.0.0.1", *options]
    words = ["-m", "torch.distributed.run", *words, f"--master_port={free_port()}", *command]
    done = subprocess.run(
        [sys.executable, *map(str, words)],
        env=environment(),
        stdout=subprocess.PIPE,
        timeout=PATIENCE,
    )
    # That of torch 1.11 with Python 3.10 crashes at its end, whatever it ran.
    if done.returncode < 0 and "this" not in command:
        code, _ = torchrun(1, "-m", "this")
        if code < 0:
            pytest.skip("this torch's torchrun crashes by itself")
    return done.returncode, done.stdout.decode()


def start(count, *command):
    """Start the processes by hand, as nothing then ends them; return each one's (code, stderr)."""
    here = dict(WORLD_SIZE=str(count), LOCAL_WORLD_SIZE=str(count), MASTER_ADDR="127.0.0.1")
    here["MASTER_PORT"] = free_port()
    processes = [
        subprocess.Popen(
            [sys.executable, *map(str, command)],
            env=environment(RANK=str(rank), LOCAL_RANK=str(rank), **here),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )
        for rank in range(count)
    ]
    try:
        errors = [process.communicate(timeout=PATIENCE)[1].decode() for process in processes]
    finally:
        for process in processes:
            process.kill()
    return [(process.returncode, error) for process, error in zip(processes, errors)]

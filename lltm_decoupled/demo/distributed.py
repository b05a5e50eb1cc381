"""The processes that torchrun started: who speaks, who has which rows, and how they act as one.

torchrun tells each process by environment variables which one it is. Where there is one only, every
function here is the trivial one and no process group is made.
"""

import contextlib
import functools
import gc
import importlib
import os
import traceback
from datetime import timedelta

import torch
import torch.distributed as dist

from .. import _streams
from .._arguments import counted
from .._errors import UserError

# What torchrun sets. A lone RANK in somebody's shell means nothing.
VARIABLES = {"RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"}
PATIENCE = timedelta(seconds=60)  # until all processes have come to the same end


def count():
    """Return the number of processes on all machines."""
    return int(os.environ["WORLD_SIZE"]) if VARIABLES <= set(os.environ) else 1


def rank():
    return int(os.environ["RANK"]) if count() > 1 else 0


def is_first():
    """Return whether this is the process that speaks, reads and writes."""
    return rank() == 0


@contextlib.contextmanager
def only_the_first_prints():
    """Within this context what the other processes print goes nowhere."""
    if is_first():
        yield
        return
    with open(os.devnull, "w") as nowhere, contextlib.redirect_stdout(nowhere):
        yield


def tell_mistake(line):
    """Print to stderr, once, a mistake that every process knows; return when that is done."""
    if is_first():
        _streams.tell(line)
    # torchrun ends all processes when the first of them fails: none may go before it is told.
    if count() > 1 and dist.is_available():
        _meet("told")


def _meet(name):
    """Return when every process is here or, after PATIENCE, when some must have died."""
    others = range(1, count())
    with contextlib.suppress(RuntimeError, ValueError):
        store = _store()
        store.set(f"{name} {rank()}", "here")
        store.wait([f"{name} {number}" for number in range(count())], PATIENCE)
        # The first, which may hold the store, leaves last.
        if is_first():
            store.wait([f"{name} {number} left" for number in others], PATIENCE)
        else:
            store.set(f"{name} {rank()} left", "yes")


@functools.lru_cache(maxsize=None)
def _store():
    """Return the store by which the processes find each other."""
    from torch.distributed.rendezvous import rendezvous  # a torch without distributed has none

    store, _, _ = next(rendezvous("env://"))
    # After a restart the addresses of the dead may still be there. Several machines count restarts
    # each for itself, but get a new store with each.
    if os.environ.get("GROUP_WORLD_SIZE") == "1":
        store = dist.PrefixStore(os.environ.get("TORCHELASTIC_RESTART_COUNT", "0"), store)
    return store


@contextlib.contextmanager
def joined():
    """Within this context the functions below may be called, by all processes alike.

    Raises UserError where this torch can't.
    """
    if count() == 1:
        yield
        return
    if not dist.is_available():
        raise UserError("this torch has no torch.distributed: start one process only")
    # Its functions keep the group that there is when it is first imported, for ever: now, none.
    importlib.import_module("torch.distributed.nn.functional")
    # What the processes tell each other is on the CPU, even where the gradients are not.
    dist.init_process_group("gloo", store=_store(), rank=rank(), world_size=count())
    try:
        yield
        _meet("ended")  # another process may still receive what this one has sent
    except UserError as error:
        traceback.clear_frames(error.__traceback__)
        _meet("ended")
        raise
    finally:
        # Nobody uses the replica of a model any more, and it holds the group, whose threads may
        # abort the process if they still run when the interpreter ends.
        gc.collect()
        dist.destroy_process_group()


def agreed(action, *arguments):
    """Return ``action(*arguments)``. A UserError in one process is raised in all of them."""
    result, mistake = None, None
    try:
        result = action(*arguments)
    except UserError as error:
        if count() == 1:
            raise
        mistake = str(error)
    for told in gather(mistake):
        if told is not None:
            raise UserError(told)
    return result


def by_the_first(action, *arguments):
    """Let the first process alone do it, and return the result there, elsewhere None.

    A UserError is raised in all processes.
    """
    return agreed(action, *arguments) if is_first() else agreed(lambda: None)


def share(value):
    """Return the first process's ``value`` in all of them."""
    if count() == 1:
        return value
    shared = [value]
    dist.broadcast_object_list(shared, src=0)
    return shared[0]


def gather(value):
    """Return the list of every process's ``value``, the first one's first."""
    values = [value] * count()
    if count() > 1:
        dist.all_gather_object(values, value)
    return values


def add_up(*numbers):
    """Return the sums of the numbers over all processes, a list of floats."""
    if count() == 1:
        return [float(number) for number in numbers]
    sums = torch.tensor(numbers, dtype=torch.float64)
    dist.all_reduce(sums)
    return sums.tolist()


def rows(batch):
    """Return the slice of a batch's rows that is this process's. Raises UserError for none."""
    if count() > batch:
        raise UserError(
            f"a batch of {batch} has no row for each of {count()} processes: "
            "start fewer, or give a larger --batch"
        )
    return slice(rank() * batch // count(), (rank() + 1) * batch // count())


def own_gpu(name):
    """Return which GPU this process takes where the user asks for ``name``.

    Raises UserError where there are too few for this machine's processes, or one is named.
    """
    if count() == 1:
        return name
    if name != "cuda":
        raise UserError(f"each process takes a GPU of its own: --device cuda, not {name}")
    number, gpus = int(os.environ["LOCAL_WORLD_SIZE"]), torch.cuda.device_count()
    if number > gpus:
        raise UserError(
            f"{counted(number, 'process')} on this machine, but {counted(gpus, 'GPU')}: "
            "start one process a GPU, or give --device cpu"
        )
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))  # NCCL wants it
    return f"cuda:{os.environ['LOCAL_RANK']}"


def replicate(model, device):
    """Return ``model`` so that backward gives the gradients' mean over the processes."""
    if count() == 1:
        return model
    if len(set(gather(device.type))) > 1:
        raise UserError("some processes have a GPU and some have none: give --device cpu")
    if device.type == "cpu":
        return torch.nn.parallel.DistributedDataParallel(model)
    if not dist.is_nccl_available():
        raise UserError("this torch has no NCCL: give --device cpu, or start one process only")
    group = dist.new_group(backend="nccl")
    return torch.nn.parallel.DistributedDataParallel(model, [device], process_group=group)

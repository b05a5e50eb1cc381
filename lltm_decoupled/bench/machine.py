"""The machine that is measured: its name and versions, and its settings while it is."""

import contextlib
import os
import platform
import re
import time

import torch

import lltm_decoupled

from .._arguments import counted


def describe(device, threads):
    """What a figure has to be read with, as a dict of JSON values."""
    cudnn = torch.backends.cudnn.version() if device.type == "cuda" else None
    return {
        "device": device_name(device),
        "host": cpu_name(),
        "threads": threads,
        "lltm_decoupled": lltm_decoupled.__version__,
        "torch": torch.__version__,
        "cuda": torch.version.cuda,
        "cudnn": cudnn,
        "python": platform.python_version(),
        "platform": platform.platform(),
        "when": time.strftime("%Y-%m-%d %H:%M:%S"),
    }


def in_words(facts):
    """The description's first line for a reader."""
    parts = [facts["device"], f"torch {facts['torch']}"]
    if facts["cudnn"]:
        parts += [f"CUDA {facts['cuda']}", f"cuDNN {facts['cudnn']}", f"host {facts['host']}"]
    return ", ".join([*parts, counted(facts["threads"], "CPU thread")])


def device_name(device):
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    return cpu_name() if device.type == "cpu" else str(device)


def cpu_name():
    """The processor's name as Linux knows it, elsewhere what Python knows."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
            found = re.search(r"^model name\s*:\s*(.+?)\s*$", file.read(), re.MULTILINE)
    except OSError:
        found = None
    return found.group(1) if found else platform.processor() or platform.machine()


@contextlib.contextmanager
def prepared(device, threads, tf32):
    """So many CPU threads, TF32 allowed or not; as it was before afterwards.

    On a CPU, Linux keeps the threads on as many cores of their own: one that wanders from core to
    core leaves its caches behind.
    """
    matmul, cudnn = torch.backends.cuda.matmul, torch.backends.cudnn
    before = torch.get_num_threads(), matmul.allow_tf32, cudnn.allow_tf32
    pins = device.type == "cpu" and hasattr(os, "sched_setaffinity")
    cores = os.sched_getaffinity(0) if pins else ()
    try:
        torch.set_num_threads(threads)
        matmul.allow_tf32 = cudnn.allow_tf32 = tf32
        if pins:
            os.sched_setaffinity(0, sorted(cores)[-threads:])
        with torch.cuda.device(device) if device.type == "cuda" else contextlib.nullcontext():
            yield
    finally:
        torch.set_num_threads(before[0])
        matmul.allow_tf32, cudnn.allow_tf32 = before[1:]
        if pins:
            os.sched_setaffinity(0, cores)

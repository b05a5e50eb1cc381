"""Gets what the checks of foreign toolchains need; `make toolchains` runs it.

Programs come from apt where that is there and allowed, the files of NVIDIA and torch from wheels,
by name, into $LLTM_TOOLCHAINS (default: .toolchains, which git ignores). Nothing of it is committed
or handed on. What cannot be had is named, and its checks then skip with the same reason.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import time
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CACHE = Path(os.environ.get("LLTM_TOOLCHAINS") or ROOT / ".toolchains").resolve()

# program -> its Debian package
PROGRAMS = {
    "gcc": "gcc",
    "g++": "g++",
    "wine": "wine",
    "clang++-14": "clang-14",
    "x86_64-w64-mingw32-g++-posix": "g++-mingw-w64-x86-64-posix",
}

LINUX = ("manylinux2014_x86_64", "manylinux1_x86_64")
WINDOWS = ("win_amd64",)
# Folder of the cache -> its wheels as (requirement, platforms, Python, {path in it: path here}).
# 11.7 is the oldest CUDA 11 there is as wheels.
PACKAGES = {
    "nvrtc117": [
        ("nvidia-cuda-nvrtc-cu11==11.7.99", LINUX, "3.10", {"nvidia/cuda_nvrtc/lib/": "lib/"}),
        ("nvidia-cuda-runtime-cu11==11.7.99", LINUX, "3.10", {"nvidia/cuda_runtime/": ""}),
    ],
    "nvrtc118": [
        ("nvidia-cuda-nvrtc-cu11==11.8.89", LINUX, "3.10", {"nvidia/cuda_nvrtc/lib/": "lib/"}),
        ("nvidia-cuda-runtime-cu11==11.8.89", LINUX, "3.10", {"nvidia/cuda_runtime/": ""}),
    ],
    # As clang expects a toolkit. Its headers are, but for line ends, those of the Windows wheels.
    "cuda117": [
        ("nvidia-cuda-runtime-cu11==11.7.99", LINUX, "3.10", {"nvidia/cuda_runtime/": ""}),
        ("nvidia-cuda-nvcc-cu11==11.7.99", LINUX, "3.10", {"nvidia/cuda_nvcc/": ""}),
    ],
    "nvrtc117-windows": [
        ("nvidia-cuda-nvrtc-cu11==11.7.99", WINDOWS, "3.10", {"nvidia/cuda_nvrtc/bin/": ""}),
    ],
    "cudafe130-windows": [
        ("nvidia-cuda-nvcc==13.0.88", WINDOWS, "3.10", {"nvidia/cu13/bin/cudafe++.exe": ""}),
    ],
    "torch-oldest-windows": [
        ("torch==1.11.0", WINDOWS, "3.10", {"torch/include/": "", "torch/version.py": ""}),
    ],
    "torch-newest-windows": [
        ("torch", WINDOWS, "3.11", {"torch/include/": "", "torch/version.py": ""}),
    ],
}


def say(*words):
    print(*words, flush=True)


def install_programs():
    wanted = [package for name, package in PROGRAMS.items() if not shutil.which(name)]
    if not wanted:
        return
    command = ["apt-get", "install", "-y", "--no-install-recommends", *wanted]
    if not shutil.which("apt-get") or os.geteuid() != 0:
        say("missing programs; as root:", *command)
        return
    quiet = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL}
    env = dict(os.environ, DEBIAN_FRONTEND="noninteractive")
    subprocess.run(["apt-get", "update"], env=env, **quiet)
    if subprocess.run(command, env=env, **quiet).returncode:
        say("apt-get could not install:", *wanted)


def unpack(wheel, paths, folder):
    with zipfile.ZipFile(str(wheel)) as archive:
        for member in archive.namelist():
            for inside, here in paths.items():
                if not member.startswith(inside) or member.endswith("/"):
                    continue
                rest = member[len(inside) :] if inside.endswith("/") else Path(inside).name
                target = folder / here / rest
                target.parent.mkdir(parents=True, exist_ok=True)
                with archive.open(member) as source, open(str(target), "wb") as copy:
                    shutil.copyfileobj(source, copy)
                if "bin" in target.parts:
                    target.chmod(0o755)


def install_package(name, wheels):
    folder = CACHE / name
    if (folder / "complete").exists():
        return
    shutil.rmtree(str(folder), ignore_errors=True)
    folder.mkdir(parents=True)
    start = time.time()
    for requirement, platforms, python, paths in wheels:
        with tempfile.TemporaryDirectory(dir=str(CACHE)) as temporary:
            command = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "-d", temporary]
            command += ["--only-binary=:all:", "--python-version", python, requirement]
            for platform in platforms:
                command += ["--platform", platform]
            if subprocess.run(command, stdin=subprocess.DEVNULL).returncode:
                say(f"{name}: pip could not download {requirement}")
                return
            (wheel,) = Path(temporary).glob("*.whl")
            unpack(wheel, paths, folder)
            say(f"{name}: {wheel.name}, {wheel.stat().st_size / 1e6:.0f} MB")
    (folder / "complete").touch()
    say(f"{name}: {time.time() - start:.0f} s")


def make_wine_prefix():
    """Here and not in the tests, so that two of them never make it at the same time."""
    prefix = CACHE / "wine"
    wineboot = shutil.which("wineboot")
    if (prefix / "system.reg").exists() or not wineboot:
        return
    env = dict(os.environ, WINEPREFIX=str(prefix), WINEDEBUG="-all", WINEARCH="win64")
    quiet = {
        "stdin": subprocess.DEVNULL,
        "stdout": subprocess.DEVNULL,
        "stderr": subprocess.DEVNULL,
    }
    subprocess.run([wineboot, "-i"], env=env, **quiet)
    subprocess.run([shutil.which("wineserver") or "wineserver", "-w"], env=env, **quiet)


def main():
    if not sys.platform.startswith("linux"):
        raise SystemExit("these checks run on Linux")
    CACHE.mkdir(parents=True, exist_ok=True)
    install_programs()
    for name, wheels in PACKAGES.items():
        install_package(name, wheels)
    make_wine_prefix()


if __name__ == "__main__":
    main()

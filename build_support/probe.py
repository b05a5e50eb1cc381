"""The facts that `plan.py` decides on: the impure half, which runs compilers and imports torch.

Compilers print their banners in the language and code page of the machine, so what they say is
decoded with errors="replace" and only digits and paths are read from it.
"""

import glob
import os
import re
import shlex
import shutil
import subprocess
import sys
import sysconfig

from .facts import BuildError, Compiler, Toolkit
from .plan import ALL_DEFAULT_ARCHS

DEFAULT_CUDA = "/usr/local/cuda"

NO_TORCH = """\
lltm_decoupled is compiled against the PyTorch it will run with, which was not found ({error}).
  1. install PyTorch first: https://pytorch.org/get-started/locally/
  2. pip install setuptools wheel ninja
  3. pip install --no-build-isolation .   (uv pip install --no-build-isolation .)
An isolated build can be given the folder that holds torch: LLTM_TORCH_SITE=.../site-packages"""

OLD_TORCH = """\
torch {version} cannot import its own torch.utils.cpp_extension ({error}).
torch 2.1 and older need pkg_resources, which newer setuptools no longer have:
pip install "setuptools<70" """


def import_torch():
    try:
        import torch
    except ImportError as error:
        raise BuildError(NO_TORCH.format(error=error)) from error
    return torch


def import_cpp_extension():
    torch = import_torch()
    try:
        from torch.utils import cpp_extension
    except ImportError as error:
        raise BuildError(OLD_TORCH.format(version=torch.__version__, error=error)) from error
    return cpp_extension


def ask(*command):
    """Everything the command prints, "" if it cannot be run; its exit status does not matter."""
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )
    except OSError:
        return ""
    return done.stdout.decode("utf-8", errors="replace")


def _read(path):
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError:
        return ""


def _first_with(home, folders, names):
    """The first of home's folders that holds one of the files, "" if none does."""
    for pattern in folders:
        for folder in sorted(glob.glob(os.path.join(glob.escape(home), *pattern.split("/")))):
            if any(os.path.exists(os.path.join(folder, name)) for name in names):
                return folder
    return ""


def _include_dir(home):
    return _first_with(home, ("include", "targets/*/include"), ("cuda_runtime.h",))


def _library_dir(home):
    # libcudart.so by this very name: -lcudart does not take the libcudart.so.13 of some wheels
    folders = ("lib64", "lib", "lib/x64", "targets/*/lib", "lib/*-linux-gnu")
    return _first_with(home, folders, ("libcudart.so", "cudart.lib", "libcudart.dylib"))


def _homes(nvcc):
    """Where the toolkit of this nvcc may be, best guess first.

    The nvcc on PATH can be a script or a link outside its toolkit; nvcc itself knows where it is.
    """
    top = re.search(r"^#\$ TOP=(.+?)\s*$", ask(nvcc, "--dryrun", "x.cu"), re.MULTILINE)
    if top:
        yield os.path.realpath(top.group(1).strip('"'))
    for path in (nvcc, os.path.realpath(nvcc)):
        yield os.path.dirname(os.path.dirname(os.path.abspath(path)))


def _nvccs(env):
    name = "nvcc.exe" if sys.platform == "win32" else "nvcc"
    if env.get("CUDA_HOME"):  # the user's own word: nothing else is tried
        yield os.path.join(env["CUDA_HOME"], "bin", name)
        return
    if env.get("CUDA_PATH"):
        yield os.path.join(env["CUDA_PATH"], "bin", name)
    yield shutil.which("nvcc", path=env.get("PATH"))
    yield os.path.join(DEFAULT_CUDA, "bin", name)


def _cudart_release(number):
    """13000 -> "13.0", 11050 -> "11.5"."""
    return f"{number // 1000}.{number % 1000 // 10}"


def find_toolkit(env):
    """(Toolkit or None, where it was looked for)."""
    searched = f"PATH, CUDA_PATH, {DEFAULT_CUDA}"
    if env.get("CUDA_HOME"):
        searched = "CUDA_HOME=" + env["CUDA_HOME"]
    nvcc = next((path for path in _nvccs(env) if path and os.path.isfile(path)), None)
    release = nvcc and re.search(r"release (\d+\.\d+)", ask(nvcc, "--version"))
    if not release:
        return None, searched

    homes = list(_homes(nvcc))
    home = next((home for home in homes if _include_dir(home)), homes[0])
    include, library = _include_dir(home), _library_dir(home)
    header = _read(os.path.join(include, "cuda_runtime_api.h"))
    cudart = re.search(r"#define\s+CUDART_VERSION\s+(\d+)", header)
    limits = _read(os.path.join(include, "crt", "host_config.h"))
    msvc = re.search(r"_MSC_VER\s*<\s*(\d+)\s*\|\|\s*_MSC_VER\s*>=\s*(\d+)", limits)
    usual = {os.path.join(home, *f.split("/")) for f in ("include", "lib64", "lib/x64")}
    toolkit = Toolkit(
        nvcc=nvcc,
        version=release.group(1),
        home=home,
        missing=tuple(
            what
            for what, folder in (("include/cuda_runtime.h", include), ("libcudart", library))
            if not folder
        ),
        headers_version=_cudart_release(int(cudart.group(1))) if cudart else "",
        include_dirs=(include,) if include and include not in usual else (),
        library_dirs=(library,) if library and library not in usual else (),
        msvc_range=(int(msvc.group(1)), int(msvc.group(2))) if msvc else None,
    )
    return toolkit, searched


def wheel_include_dirs(torch):
    """Folders with the headers of the CUDA libraries that torch's own wheels brought."""
    packages = glob.escape(os.path.dirname(os.path.dirname(torch.__file__)))
    return tuple(sorted(glob.glob(os.path.join(packages, "nvidia", "*", "include"))))


def find_compiler(env, platform):
    """The host compiler; None where none is found, on Windows where cl.exe is not on PATH."""
    if platform != "win32":
        usual = ("c++", "g++", "clang++", sysconfig.get_config_var("CXX") or "c++")
        tried = [env["CXX"]] if env.get("CXX") else usual
        on_path = (
            name for name in tried if shutil.which(shlex.split(name)[0], path=env.get("PATH"))
        )
        path = next(on_path, None)
        if path is None:
            return None
        macros = ask(*shlex.split(path), "-dM", "-E", "-x", "c++", os.devnull)
        is_gcc = "__GNUC__" in macros and "__clang__" not in macros and "__INTEL" not in macros
        return Compiler(path, is_gcc=is_gcc)
    cl = shutil.which("cl", path=env.get("PATH"))
    if cl is None:
        return None
    banner = re.search(r"\b(\d+)\.(\d+)\.\d+", ask(cl))  # "... Version 19.39.33523 for x64"
    return Compiler(cl, f"{int(banner.group(1))}{int(banner.group(2)):02}" if banner else "")


def known_archs(cpp_extension, candidates):
    """Those candidates that this torch accepts; all of them if it does not say."""
    flags = getattr(cpp_extension, "_get_cuda_arch_flags", None)
    if flags is None:
        return None
    before = os.environ.get("TORCH_CUDA_ARCH_LIST")
    accepted = set()
    try:
        for arch in candidates:
            os.environ["TORCH_CUDA_ARCH_LIST"] = arch
            try:
                flags()
            except ValueError:
                continue
            accepted.add(arch)
    finally:
        if before is None:
            del os.environ["TORCH_CUDA_ARCH_LIST"]
        else:
            os.environ["TORCH_CUDA_ARCH_LIST"] = before
    return accepted


def _put_ninja_on_path(env):
    """torch looks for it on PATH only, and an environment that is not activated is not there.

    Without ninja torch would fall back to distutils, which reuses objects of another configuration.
    """
    scripts = sysconfig.get_path("scripts")
    if shutil.which("ninja", path=env.get("PATH")):
        return
    if not shutil.which("ninja", path=scripts):
        raise BuildError("ninja is missing: pip install ninja")
    env["PATH"] = scripts + os.pathsep + env.get("PATH", "")


def gather(env, version):
    """The arguments of `plan.plan` on this machine."""
    torch = import_torch()
    _put_ninja_on_path(env)
    toolkit, searched = find_toolkit(env)
    if toolkit:
        # cpp_extension reads it once, at import, and would guess the parent of nvcc's folder
        env["CUDA_HOME"] = toolkit.home
    cpp_extension = import_cpp_extension()
    return {
        "env": env,
        "platform": sys.platform,
        "torch_version": torch.__version__,
        "torch_cuda": torch.version.cuda,
        "toolkit": toolkit,
        "searched": searched,
        "wheel_include_dirs": wheel_include_dirs(torch),
        "compiler": find_compiler(env, sys.platform),
        "known_archs": known_archs(cpp_extension, ALL_DEFAULT_ARCHS),
        # Chooses the architectures only: whether CUDA is built never depends on a visible GPU.
        "gpu_visible": bool(torch.version.cuda) and torch.cuda.device_count() > 0,
        "version": version,
        "target": sysconfig.get_platform(),
    }

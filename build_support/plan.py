"""What will be built, decided by one pure function: no torch, no subprocess, no file access here.

`probe.py` collects the facts, `setup.py` and `lltm_decoupled.jit` carry out the plan, and
`tests/test_build_plan.py` is the table of cases.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from .facts import BuildError
from .sources import APART, CUDA_SOURCES, MSVC_OWN_FLAGS

NAME = "lltm_decoupled"
MINIMUM_TORCH = (1, 11)
INCLUDE_DIRS = (".", "cuda_core")  # in the checkout

# First nvcc version of each default: machine code for the common cards, PTX for later ones only.
# Machine code of 9.0 does not run on 10.0, nor does PTX of 12.0: each has to be listed. That of 8.0
# runs on 8.6 and 8.9.
DEFAULT_ARCHS = (
    ((13, 0), "7.5;8.0;9.0;10.0;12.0+PTX"),
    ((11, 8), "5.0;6.0;7.0;7.5;8.0;9.0+PTX"),
    ((11, 0), "5.0;6.0;7.0;7.5;8.0+PTX"),
    ((0, 0), "5.0;6.0;7.0;7.5+PTX"),
)
ALL_DEFAULT_ARCHS = frozenset(
    arch for _, archs in DEFAULT_ARCHS for arch in archs.replace("+PTX", "").split(";")
)
NO_CL = (
    "cl.exe is not on PATH: if the compiler is not found below, start the 'x64 Native Tools "
    "Command Prompt for VS' (or run vcvars64.bat) and build there"
)


@dataclass
class Plan:
    with_cuda: bool
    decision: str  # one line for the build log
    flavour: str  # names the object folder: objects of one flavour never serve another
    sources: list[str]  # besides the one that `sources.write_together` writes
    define_macros: list[tuple[str, str | None]]
    extra_compile_args: dict[str, list[str]]
    include_dirs: list[str] = field(default_factory=lambda: list(INCLUDE_DIRS))
    library_dirs: list[str] = field(default_factory=list)
    own_flags: dict[str, list[str]] = field(default_factory=dict)  # of a source, besides the others
    arch_list: str = ""
    environment: dict[str, str] = field(default_factory=dict)  # to set before compiling
    messages: list[str] = field(default_factory=list)  # warnings, one line each


def numbers(version):
    """(2, 14) of "2.14.1+cu130"; () where there is nothing to compare."""
    parts = (version or "").split("+")[0].split(".")[:2]
    return tuple(int("".join(c for c in part if c.isdigit()) or 0) for part in parts if part)


def _switch(env, name):
    value = env.get(name, "").strip()
    if value not in ("", "0", "1"):
        raise BuildError(f"{name} must be 0 or 1, got {value!r}")
    return None if value == "" else value == "1"


def _why_not_cuda(torch_version, torch_cuda, toolkit, searched):
    """The reason why CUDA cannot be built here and what would help, or None."""
    if not torch_cuda:
        return (
            f"torch {torch_version} is a build without CUDA (install one with CUDA to change that)"
        )
    major = numbers(torch_cuda)[0]
    remedy = f"install the toolkit of CUDA {major}, or set CUDA_HOME to its folder"
    if toolkit is None:
        return (
            f"torch {torch_version} wants CUDA {torch_cuda} and no nvcc was found ({searched}): "
            f"{remedy}"
        )
    if toolkit.missing:
        return (
            f"the toolkit of {toolkit.nvcc} lacks {', '.join(toolkit.missing)} in {toolkit.home}: "
            f"{remedy}"
        )
    if numbers(toolkit.version)[:1] != (major,):
        return (
            f"{toolkit.nvcc} is CUDA {toolkit.version} and torch {torch_version} was built for "
            f"CUDA {torch_cuda}, and the major versions must be equal: {remedy}"
        )
    return None


def default_archs(nvcc_version, known_archs=None):
    """TORCH_CUDA_ARCH_LIST for a machine without a GPU; known_archs is what this torch accepts."""
    found = numbers(nvcc_version)
    archs = next(archs for first, archs in DEFAULT_ARCHS if found >= first)
    archs = archs.replace("+PTX", "").split(";")
    if known_archs is not None:
        archs = [arch for arch in archs if arch in known_archs]
    if not archs:
        raise BuildError(
            f"this torch knows none of the GPU architectures of nvcc {nvcc_version}: "
            "set TORCH_CUDA_ARCH_LIST"
        )
    return ";".join(archs) + "+PTX"


def _warnings(windows, with_cuda, torch_cuda, toolkit, compiler):
    if windows and compiler is None:
        yield NO_CL
    if not with_cuda:
        return
    if numbers(toolkit.version) != numbers(torch_cuda):
        yield f"nvcc is CUDA {toolkit.version}, torch was built for CUDA {torch_cuda}: usually fine"
    if toolkit.headers_version and numbers(toolkit.headers_version) != numbers(toolkit.version):
        yield (
            f"{toolkit.nvcc} is CUDA {toolkit.version} but the headers in {toolkit.home} are of "
            f"CUDA {toolkit.headers_version}: two toolkits are mixed, set CUDA_HOME to one of them"
        )
    if windows and compiler and compiler.version and toolkit.msvc_range:
        first, refused = toolkit.msvc_range
        if not first <= int(compiler.version) < refused:
            yield (
                f"CUDA {toolkit.version} takes MSVC {first} to {refused - 1} (_MSC_VER) and "
                f"{compiler.path} is {compiler.version}: install a matching toolset, or set "
                "NVCC_APPEND_FLAGS=-allow-unsupported-compiler at your own risk"
            )


def _macro_string(text, windows):
    # torch quotes the flags for the shell on POSIX; on Windows ninja hands them straight to the
    # compiler, whose command line would eat a plain quote.
    return f'\\"{text}\\"' if windows else f'"{text}"'


def plan(
    env,
    platform,
    torch_version,
    torch_cuda,
    toolkit=None,
    compiler=None,
    known_archs=None,
    gpu_visible=False,
    searched="PATH",
    version="",
    wheel_include_dirs=(),
    target="",
):
    """Decide what to build from plain facts.

    env: the environment. platform: sys.platform. torch_cuda: torch.version.cuda.
    known_archs: what torch's cpp_extension accepts, None if unknown. gpu_visible: torch then
    chooses the architectures itself. searched: where nvcc was looked for. version: of the package.
    wheel_include_dirs: where torch's wheels keep the headers of CUDA's libraries.
    target: sysconfig.get_platform().
    """
    windows = platform == "win32"
    if numbers(torch_version) < MINIMUM_TORCH:
        raise BuildError(f"{NAME} needs torch 1.11 or newer, found {torch_version}")
    if compiler is None and not windows:
        raise BuildError(
            "no C++ compiler was found (CXX, c++, g++, clang++): install one, such as Debian's "
            "package g++, or name it in CXX"
        )

    wanted = _switch(env, "LLTM_WITH_CUDA")
    forced_by = "LLTM_WITH_CUDA"
    if wanted is None:
        wanted = _switch(env, "FORCE_CUDA")
        forced_by = "FORCE_CUDA"
    obstacle = _why_not_cuda(torch_version, torch_cuda, toolkit, searched)
    if wanted and obstacle:
        raise BuildError(f"{forced_by}=1 asks for CUDA, but {obstacle}")
    with_cuda = obstacle is None if wanted is None else wanted

    archs = ""
    environment = {}
    if windows and env.get("VSCMD_ARG_TGT_ARCH"):
        environment["DISTUTILS_USE_SDK"] = env.get("DISTUTILS_USE_SDK") or "1"
    if with_cuda:
        archs = env.get("TORCH_CUDA_ARCH_LIST", "")
        if not archs and not gpu_visible:
            archs = default_archs(toolkit.version, known_archs)
            environment["TORCH_CUDA_ARCH_LIST"] = archs
        environment["CUDA_HOME"] = toolkit.home  # torch's own guess is the parent of nvcc's folder
        decision = (
            f"with CUDA {toolkit.version} ({toolkit.nvcc}) for torch {torch_version} "
            f"(CUDA {torch_cuda}), archs {archs or 'of the visible GPUs'}"
        )
    else:
        reason = obstacle if wanted is None else f"{forced_by}=0"
        decision = f"without CUDA for torch {torch_version}: {reason}"

    macros = [("LLTM_VERSION", _macro_string(version, windows))]
    if with_cuda:
        macros.append(("LLTM_WITH_CUDA", None))
    # Python hands on the -g it was built with: with torch's headers, 60% more compile time.
    asked = (env.get("CFLAGS", "") + " " + env.get("CXXFLAGS", "")).split()
    debug = any(flag.startswith("-g") for flag in asked)
    # GCC vectorises a choice between two values only if no one looks at floating-point exception
    # flags; values do not change (this is not a part of fast-math that loses accuracy).
    flags = {"cxx": ["-O3", "-fno-trapping-math"], "nvcc": ["-O3"]}
    if not debug:
        flags["cxx"].append("-g0")
    if with_cuda and not windows:
        # Not every toolkit has cuBLAS. Behind everything else, for the wheels repeat the toolkit's.
        flags["cxx"] += ["-idirafter" + folder for folder in wheel_include_dirs]
    # For at::parallel_for. Compiled, never linked: GCC's calls find the OpenMP runtime that torch
    # has loaded. Those of Clang and of MSVC would be second ones in the process.
    if platform.startswith("linux") and compiler and compiler.is_gcc:
        flags["cxx"].append("-fopenmp")
    if windows:
        flags = {"cxx": ["/O2", "/bigobj"], "nvcc": []}
    flavour = f"cuda{toolkit.version}" if with_cuda else "cpu"
    return Plan(
        with_cuda=with_cuda,
        decision=f"{NAME}: building {decision}",
        flavour=f"{flavour}-torch{torch_version}",
        sources=[*APART, *(CUDA_SOURCES if with_cuda else ())],
        define_macros=macros,
        extra_compile_args=flags,
        include_dirs=[*INCLUDE_DIRS, *(toolkit.include_dirs if with_cuda else ())],
        library_dirs=[*(toolkit.library_dirs if with_cuda else ())],
        own_flags=dict(MSVC_OWN_FLAGS) if target == "win-amd64" else {},
        arch_list=archs,
        environment=environment,
        messages=[
            f"{NAME}: warning: {text}"
            for text in _warnings(windows, with_cuda, torch_cuda, toolkit, compiler)
        ],
    )

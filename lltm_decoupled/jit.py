"""The just-in-time build: the sources that the package carries, compiled where it runs.

    import lltm_decoupled
    lltm_decoupled.jit.load()

They are compiled by torch.utils.cpp_extension.load as `pip install` would compile them: the same
plan (build_support/plan.py), the same environment variables. A second process finds the binary of
the first.
"""

import contextlib
import importlib
import importlib.util
import os
import shlex
import sys
from pathlib import Path
from typing import Any, Optional, Union

from . import _native
from ._arguments import flag
from ._version import __version__

__all__ = ["load"]

# Beside this file in an installed package, one folder up in a checkout.
_PLACES = (Path(__file__).resolve().parent / "_sources", Path(__file__).resolve().parent.parent)


def load(
    build_directory: Union[str, "os.PathLike[str]", None] = None,
    verbose: bool = False,
    with_cuda: Optional[bool] = None,
) -> Any:
    """Compiles the package's compiled module, and makes it the package's `_C`.

    Where the package has one already, that one is returned and nothing is compiled. From here on
    every function and module of the package is compiled, those that exist already too.
    TORCH_CUDA_ARCH_LIST, CUDA_HOME, CXX and MAX_JOBS have their usual meaning. No tensors are
    taken: shapes and dtypes play no part.

    Args:
        build_directory: where objects and binary are kept; by default a folder of this torch and
            this configuration in TORCH_EXTENSIONS_DIR, or where torch keeps its extensions
        verbose: print what the compilers print
        with_cuda: True to insist on CUDA, False to go without; by default as LLTM_WITH_CUDA says,
            or with CUDA if torch is a CUDA build and a toolkit of the same major version is found

    Returns:
        the module

    Raises:
        RuntimeError: it cannot be compiled here, or the one there is has no CUDA and with_cuda is
            True. What the package does without a compiled module it still does.
        TypeError: verbose or with_cuda is not a bool, build_directory not a path

    Source: bindings/module.cpp.
    """
    if not (build_directory is None or isinstance(build_directory, (str, os.PathLike))):
        raise TypeError(f"build_directory must be a path or None, got {build_directory!r}")
    flag("verbose", verbose)
    if with_cuda is not None:
        flag("with_cuda", with_cuda)
    module = _native.loaded()
    if module is None:
        module = _build(build_directory, verbose, with_cuda)
        _native.adopt(module)
    elif with_cuda and not module.build_info()["cuda"]:
        raise RuntimeError(
            "lltm_decoupled: with_cuda=True, but a compiled module without CUDA is loaded: "
            f"{module.__file__}. Remove it, or rebuild it with LLTM_WITH_CUDA=1"
        )
    return module


def _build(build_directory, verbose, with_cuda):
    root = _find_sources()
    facts, plan, probe, sources, load_folder = _build_support(root)
    with _environment_of_its_own():
        if with_cuda is not None:
            os.environ["LLTM_WITH_CUDA"] = str(int(with_cuda))
        try:
            found = probe.gather(os.environ, __version__)
            todo = plan.plan(**found)
            if found["compiler"] is None:
                raise facts.BuildError(plan.NO_CL)
            cpp_extension = probe.import_cpp_extension()
        except facts.BuildError as error:
            raise RuntimeError(f"{plan.NAME}.jit: {error}") from error
        if verbose:
            print(*todo.messages, todo.decision, sep="\n", flush=True)
        os.environ.update(todo.environment)
        if sys.platform != "win32":
            os.environ["CXX"] = found["compiler"].path
        if todo.with_cuda:
            cpp_extension.CUDA_HOME = todo.environment["CUDA_HOME"]  # read when it was imported
        name = "".join(c if c.isalnum() else "_" for c in f"{plan.NAME}_{todo.flavour}")
        try:
            build_directory = load_folder.make(
                cpp_extension, name, build_directory and str(build_directory)
            )
        except OSError as error:
            raise RuntimeError(
                f"{plan.NAME}.jit: cannot build in {error.filename}: {error}"
            ) from None
        own = [f"-I{root / folder}" for folder in plan.INCLUDE_DIRS]
        compiled = [*todo.sources[:1], sources.write_together(build_directory), *todo.sources[1:]]
        return cpp_extension.load(
            name=name,
            sources=[str(root / source) for source in compiled],
            extra_cflags=[*map(_quoted, _defines(todo) + own), *todo.extra_compile_args["cxx"]],
            # No path in it: where one has "arch" in its name, torch takes it for architectures.
            extra_cuda_cflags=todo.extra_compile_args["nvcc"],
            extra_ldflags=[_quoted(_library_flag(folder)) for folder in todo.library_dirs],
            extra_include_paths=todo.include_dirs[len(own) :],
            build_directory=build_directory,
            verbose=verbose,
            with_cuda=todo.with_cuda,
        )


def _find_sources():
    for place in _PLACES:
        if (place / "bindings" / "module.cpp").is_file():
            return place
    places = " and ".join(map(str, _PLACES))
    raise RuntimeError(f"lltm_decoupled.jit: the sources are missing: neither in {places}")


def _build_support(root):
    """Its modules, under a name that cannot meet another package's."""
    name = __package__ + "._build_support"
    if name not in sys.modules:
        folder = root / "build_support"
        spec = importlib.util.spec_from_file_location(
            name, str(folder / "__init__.py"), submodule_search_locations=[str(folder)]
        )
        sys.modules[name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules[name])
    parts = ("facts", "plan", "probe", "sources", "load_folder")
    return (importlib.import_module(f"{name}.{part}") for part in parts)


@contextlib.contextmanager
def _environment_of_its_own():
    """The build's changes of the process's environment end with it."""
    before = dict(os.environ)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


def _defines(todo):
    return [
        f"-D{name}" if value is None else f"-D{name}={value}" for name, value in todo.define_macros
    ]


def _library_flag(folder):
    return ("/LIBPATH:" if sys.platform == "win32" else "-L") + folder


def _quoted(flag):
    """For the shell through which ninja starts a compiler; Windows has none, and torch quotes."""
    return flag if sys.platform == "win32" else shlex.quote(flag)

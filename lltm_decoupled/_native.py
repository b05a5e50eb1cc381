"""Loads the compiled module, and says what to do where it cannot be loaded.

Without one the package computes with the formula in plain PyTorch, until `jit.load` has built one.
"""

import importlib.util
import sys
import warnings
from typing import Any, Callable, Dict, List, Tuple

import torch  # (before _C: it loads the libraries that _C is linked against)

from ._version import __version__

NAME = __package__ + "._C"

_REBUILD = (
    "Rebuild it against the torch that is installed: "
    "pip install --no-build-isolation --no-cache-dir --force-reinstall --no-deps . "
    "(in a checkout of lltm_decoupled)"
)
_NONE = (
    "lltm_decoupled has no compiled module and computes with plain PyTorch, which is slower and "
    "has no operators in torch.ops. To compile one: pip install --no-build-isolation . (in a "
    "checkout of lltm_decoupled), or lltm_decoupled.jit.load() in every process"
)

_waiting: List[Callable[[], Any]] = []


def loaded() -> Any:
    """The compiled module, or None."""
    return sys.modules.get(NAME)


def when_loaded(action: Callable[[], Any]) -> Callable[[], Any]:
    """Calls action() where the compiled module is loaded: now, or when it will be."""
    _waiting.append(action)
    if loaded() is not None:
        _run_waiting()
    return action


def adopt(module: Any) -> None:
    """Makes a module that was built just now the package's own."""
    _check(module)
    sys.modules[NAME] = module
    package: Any = sys.modules[__package__]
    package._C = module
    _run_waiting()


def build_info() -> Dict[str, Any]:
    if loaded() is not None:
        info: Dict[str, Any] = loaded().build_info()
        return info
    return {
        "version": __version__,
        "cuda": False,
        "cuda_version": 0,
        "archs": "",
        "torch": "",
        "compiler": "none: plain PyTorch",
    }


def _run_waiting() -> None:
    while _waiting:
        _waiting.pop(0)()


def _load() -> None:
    if importlib.util.find_spec(NAME) is None:
        warnings.warn(_NONE, stacklevel=2)
        return
    try:
        module = importlib.import_module(NAME)
    except ImportError as error:
        raise ImportError(
            f"lltm_decoupled {__version__}: the compiled module lltm_decoupled._C cannot be "
            f"loaded under torch {torch.__version__} (CUDA {torch.version.cuda}): {error}. "
            f"{_REBUILD}"
        ) from error
    _check(module)


def _check(module: Any) -> None:
    built_for = module.build_info()["torch"]
    if _release(built_for) != _release(torch.__version__):
        raise ImportError(
            f"lltm_decoupled was built for torch {built_for}, and torch {torch.__version__} "
            f"is installed. {_REBUILD}"
        )


def _release(version: str) -> Tuple[str, ...]:
    """(2, 14) of "2.14.1+cu130": the binary interface changes with these two numbers."""
    return tuple(version.split("+")[0].split(".")[:2])


_load()

"""Loads the compiled part, and says what to do where it cannot be loaded."""

from typing import TYPE_CHECKING, Any, Tuple

import torch  # noqa: F401  (before _C: it loads the libraries that _C is linked against)

from ._version import __version__

_REBUILD = (
    "Rebuild it against the torch that is installed: "
    "pip install --no-build-isolation --no-cache-dir --force-reinstall --no-deps . "
    "(in a checkout of lltm_decoupled)"
)


def _load() -> Any:
    try:
        from . import _C
    except ImportError as error:
        raise ImportError(
            f"lltm_decoupled {__version__}: the compiled module lltm_decoupled._C cannot be "
            f"loaded under torch {torch.__version__} (CUDA {torch.version.cuda}): {error}. "
            f"{_REBUILD}"
        ) from error
    info = _C.build_info()
    if _release(info["torch"]) != _release(torch.__version__):
        raise ImportError(
            f"lltm_decoupled was built for torch {info['torch']}, and torch {torch.__version__} "
            f"is installed. {_REBUILD}"
        )
    return _C


def _release(version: str) -> Tuple[str, ...]:
    """(2, 14) of "2.14.1+cu130": the binary interface changes with these two numbers."""
    return tuple(version.split("+")[0].split(".")[:2])


if TYPE_CHECKING:
    from . import _C as _C  # its types are in _C.pyi
else:
    _C = _load()

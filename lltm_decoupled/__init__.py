"""LLTM, the recurrent cell of the PyTorch extension tutorial, as a fast and complete operator."""

import pkgutil
from typing import Any, Dict

import torch  # noqa: F401  (first: the compiled module needs its libraries)

# Python started in a checkout finds the sources before an installed package; the compiled module of
# the latter is then still found.
__path__ = pkgutil.extend_path(__path__, __name__)

from . import _native, _sequence_shapes, compat, jit, reference  # noqa: E402,F401
from ._version import __version__  # noqa: E402
from .cell import LLTM, LLTMFunction, lltm_cell  # noqa: E402
from .compat import backward, forward  # noqa: E402
from .sequence import LLTMSequence, lltm_sequence  # noqa: E402

__all__ = [
    "LLTM",
    "LLTMFunction",
    "LLTMSequence",
    "__version__",
    "backward",
    "build_info",
    "compat",
    "forward",
    "jit",
    "lltm_cell",
    "lltm_sequence",
    "reference",
]


def build_info() -> Dict[str, Any]:
    """What this binary is.

    Returns:
        A dict: version (str), cuda (bool: the CUDA kernels are in it), cuda_version (int as in
        CUDART_VERSION, such as 13000; 0 without CUDA), archs (str: the GPU architectures of the
        kernels, such as "800,900"), torch (str: the torch it was built for; "" where there is no
        binary), compiler (str).
        Takes no tensors: shapes and dtypes play no part, and nothing is raised.

    Source: bindings/module.cpp.
    """
    return _native.build_info()

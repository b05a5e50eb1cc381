"""The C ABI inside the extension, called with tensors as raw pointers.

Tests that use it copy every GPU input from the host, so that under `compute-sanitizer --tool
initcheck --kernel-name kernel_substring=lltm` whatever is reported is a fault of these kernels.
"""

import ctypes

import pytest
import torch

from lltm_decoupled import _C

CTYPES = {
    torch.float32: "float",
    torch.float64: "double",
    torch.float16: "half",
    torch.bfloat16: "bfloat16",
}
# The inputs are exact in float64; what is left are a few roundings, and one of each half result.
TOLERANCES = {
    torch.float32: {"rtol": 1e-5, "atol": 1e-6},
    torch.float64: {"rtol": 1e-13, "atol": 1e-14},
    torch.float16: {"rtol": 2e-3, "atol": 1e-3},
    torch.bfloat16: {"rtol": 1.6e-2, "atol": 8e-3},
}


class Plan(ctypes.Structure):
    _fields_ = (
        ("path", ctypes.c_int32),
        ("blocks", ctypes.c_int32),
        ("workspace", ctypes.c_int64),
    )


class Options(ctypes.Structure):
    _fields_ = (
        ("tf32", ctypes.c_int32),
        ("workspace", ctypes.c_void_p),
        ("failure", ctypes.c_void_p),
        ("patience", ctypes.c_int64),
        ("steps_before", ctypes.c_int64),
    )


class Gpu:
    """Whose functions of CUDA these are, and whose memory; tests may put another in its place."""

    memory = "cuda"

    def put(self, tensor):
        return tensor.to(self.memory)

    def function(self, name):
        library = ctypes.CDLL(_C.__file__)
        if not hasattr(library, name):
            pytest.skip("this platform's extension modules export only their init function")
        return getattr(library, name)

    def stream(self):
        return torch.cuda.current_stream().cuda_stream


gpu = Gpu()


def argument(value):
    if isinstance(value, ctypes.Structure):
        return ctypes.byref(value)
    if isinstance(value, int):
        return ctypes.c_int64(value)
    return ctypes.c_void_p(None if value is None else value.data_ptr())


def exported(name):
    function = gpu.function(name)
    function.restype = ctypes.c_int32
    return function


def numbers_to_cuda(*arguments):
    stream = ctypes.c_void_p(gpu.stream())
    return exported("lltm_numbers_to_cuda")(*map(argument, arguments), stream)


def core(operation, dtype, device=None):
    """A function of the GPU, or of the device "cpu" its twin."""
    device = "cuda" if device in (None, gpu.memory) else device
    function = exported(f"lltm_{operation}_{device}_{CTYPES[dtype]}")

    def call(*arguments):
        """Sizes and flags are ints, arrays tensors or None; the stream is added."""
        if operation == "sequence_plan":
            return function(*map(argument, arguments))
        stream = gpu.stream() if device == "cuda" else None
        return function(*map(argument, arguments), ctypes.c_void_p(stream))

    return call


def gradients_workspace(rows, batch_size, state_size, input_features):
    function = exported("lltm_sequence_gradients_workspace_cuda")
    function.restype = ctypes.c_int64
    return function(*map(argument, (rows, batch_size, state_size, input_features)))


def multiply_workspace(rows, inner, columns):
    function = exported("lltm_multiply_workspace_cuda_float")
    function.restype = ctypes.c_int64
    return function(*map(argument, (rows, inner, columns)))


def put(tensor, device):
    return gpu.put(tensor) if device in (None, gpu.memory) else tensor.to(device)


def from_host(dtype, *shape, device=None):
    return put(torch.randn(*shape, dtype=torch.float64).to(dtype), device)


def poisoned(dtype, *shape, device=None):
    return put(torch.full(shape, float("nan"), dtype=dtype), device)


def exact(tensor):
    return tensor.to("cpu", torch.float64, copy=True)

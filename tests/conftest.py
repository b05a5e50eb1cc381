"""The device matrix: every public op runs over TARGETS and is held to the float64 CPU reference.

`LLTM_REQUIRE_CUDA=1` turns a missing GPU (or a binary without CUDA) from a skip into a failure.
"""

import functools
import gc
import os
from typing import NamedTuple

import pytest

# The workers of `pytest -n` share the processors; torch reads this when it is imported.
_workers = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", 0))
if _workers:
    os.environ.setdefault("OMP_NUM_THREADS", str(max(1, os.cpu_count() // _workers)))

import torch  # noqa: E402


class Target(NamedTuple):
    device: str
    dtype: torch.dtype
    rtol: float  # both against the float64 CPU reference, for values of size about one
    atol: float

    def __str__(self):
        return "{}-{}".format(self.device, str(self.dtype).replace("torch.", ""))


DEVICES = ["cpu", "cuda:0"]
SECOND_GPU = "cuda:1"  # not the current device: catches a missing device guard
if torch.cuda.is_available():
    DEVICES.append(SECOND_GPU)

# dtype -> (rtol, atol). A cell is two matrix products with a few dozen roundings between them.
# float64: machine epsilon 2.2e-16; 1e-12 leaves a factor 4500, and no float step survives it.
# float32: machine epsilon 1.2e-7; rtol 1e-5 is 84 roundings. Where a sum cancels only the absolute
# error counts: sums of up to 100 terms that come to about one are within 2e-6 of the exact value.
# helpers.assert_same_results says what longer sums add.
# Half types: the gates, of size up to four, are stored once between the product and the rest, which
# rounds them by half a unit in their last place: 2^-10 in float16, 2^-7 in bfloat16. Twice to four
# times that reaches the results; tests/test_accuracy.py holds them closer, to the eager module.
TOLERANCES = {
    torch.float64: (1e-12, 1e-12),
    torch.float32: (1e-5, 2e-6),
    torch.float16: (4e-3, 4e-3),
    torch.bfloat16: (3e-2, 3e-2),
}
# torch up to 2.0 adds up some products of a CPU in bfloat16 itself: 512 ones come to 256.
if (torch.ones(1, 512).bfloat16() @ torch.ones(512, 4).bfloat16())[0, 0] != 512:
    TOLERANCES[torch.bfloat16] = (6e-2, 6e-2)


def targets(*devices):
    return [Target(d, dtype, *tol) for d in devices for dtype, tol in TOLERANCES.items()]


TARGETS = targets(*DEVICES)


def why_missing(device):
    """None if tests can run on `device`, else the reason."""
    if device == "cpu":
        return None
    if not torch.cuda.is_available():
        return "no CUDA GPU is visible to torch " + torch.__version__
    import lltm_decoupled  # here, so that tests of the core alone do not need the package

    if not lltm_decoupled.build_info()["cuda"]:
        return "lltm_decoupled was built without CUDA"
    index, count = torch.device(device).index, torch.cuda.device_count()
    return None if index < count else f"needs GPU {index}, there are {count}"


def require_device(device):
    """Skip the running test, saying why, or fail it if LLTM_REQUIRE_CUDA promises a GPU."""
    reason = why_missing(device)
    if reason is None:
        return
    # One GPU keeps the promise: a second one is never required.
    if os.environ.get("LLTM_REQUIRE_CUDA") == "1" and why_missing("cuda:0"):
        pytest.fail("LLTM_REQUIRE_CUDA=1, but " + reason)
    pytest.skip(reason)


@functools.lru_cache(maxsize=None)
def why_unsupported(dtype):
    """None if torch itself computes a cell in `dtype` on a CPU; torch 1 does not in half types."""
    from lltm_decoupled import reference

    shapes = ((2, 1), (3, 2), (3,), (2, 1), (2, 1))
    inputs = [torch.ones(shape, dtype=dtype, requires_grad=True) for shape in shapes]
    try:
        sum(output.sum() for output in reference.lltm_cell(*inputs)).backward()
        return None
    except RuntimeError as error:
        return f"torch {torch.__version__} on a CPU: {error}"


def require_target(target):
    require_device(target.device)
    if target.device == "cpu" and why_unsupported(target.dtype):
        pytest.skip(why_unsupported(target.dtype))


def usable(target):
    """Yield an available target, and see that the test left the current device alone."""
    require_target(target)
    yield target
    if target.device != "cpu":
        assert torch.cuda.current_device() == 0, "the current device was changed"


@pytest.fixture(params=TARGETS, ids=str)
def target(request):
    yield from usable(request.param)


@pytest.fixture(params=[t for t in TARGETS if t.dtype == torch.float64], ids=str)
def float64_target(request):
    """For gradcheck and whatever else is meaningful in float64 only."""
    yield from usable(request.param)


@pytest.fixture(params=[t for t in TARGETS if t.device == "cuda:0"], ids=str)
def cuda_target(request):
    yield from usable(request.param)


@pytest.fixture(params=targets(SECOND_GPU), ids=str)
def second_gpu_target(request):
    yield from usable(request.param)


@pytest.fixture(scope="session")
def emulated_gpu(tmp_path_factory):
    import emulated_gpu  # which imports this file

    return emulated_gpu.made_once(tmp_path_factory)


@pytest.fixture
def gpu(emulated_gpu, monkeypatch):
    """One that is emulated, in the place of a GPU."""
    return emulated_gpu.take_the_place(monkeypatch)


@pytest.fixture(autouse=True)
def seeded():
    torch.manual_seed(20)


@pytest.fixture(autouse=True)
def no_old_graphs(request):
    """A CUDA graph of an earlier test, collected during a capture, would break the capture."""
    if "graph" in request.node.name and torch.cuda.is_available():
        gc.collect()


@pytest.fixture(autouse=True)
def no_tf32():
    """TF32 keeps 10 bits of a float32 product, and torch 1.11 has it on; off for every test."""
    matmul = torch.backends.cuda.matmul
    if hasattr(torch, "set_float32_matmul_precision"):
        before = torch.get_float32_matmul_precision()
        torch.set_float32_matmul_precision("highest")
        yield
        torch.set_float32_matmul_precision(before)
    else:
        before, matmul.allow_tf32 = matmul.allow_tf32, False
        yield
        matmul.allow_tf32 = before

"""3 x - y in C++, with its gradient, as an operator that all of PyTorch knows.

It teaches: a schema, a kernel and a gradient in TORCH_LIBRARY (my_op.cpp), the shape function for
torch.compile, and opcheck. It needs a C++ compiler and ninja.

    python examples/my_op.py
"""

import os
import sys

import torch
from torch.utils.cpp_extension import load

# The ninja of this environment is found whether or not the environment is activated.
os.environ["PATH"] = os.path.dirname(sys.executable) + os.pathsep + os.environ["PATH"]


def load_my_op():
    """Compiles and loads the library. Loading it registers the operator."""
    # Such a library has no Python module in it: an import of it would fail.
    source = os.path.join(os.path.dirname(os.path.abspath(__file__)), "my_op.cpp")
    load("lltm_example_my_op", [source], is_python_module=False)
    return torch.ops.lltm_example.my_op


def register_shapes():
    """What the result looks like, for tensors without values; torch 2.4 and newer."""

    @torch.library.register_fake("lltm_example::my_op")
    def _(x, y):
        torch._check(x.shape == y.shape, lambda: f"shapes differ: {x.shape} and {y.shape}")
        return torch.empty_like(x)


def main():
    my_op = load_my_op()
    x, y = (torch.randn(4, 3, dtype=torch.float64, requires_grad=True) for _ in range(2))
    torch.testing.assert_close(my_op(x, y), 3 * x - y)
    assert torch.autograd.gradcheck(my_op, (x, y))
    assert torch.autograd.gradgradcheck(my_op, (x, y))
    print("my_op: 3 x - y, with the right gradients")
    try:
        my_op(x, y[:2])
    except RuntimeError as error:
        print("a mistake:", str(error).partition("\n")[0])
    else:
        raise AssertionError("wrong shapes were taken")

    if not hasattr(getattr(torch, "library", None), "opcheck"):  # torch 2.4 has it
        print(f"torch {torch.__version__} has no opcheck")
        return
    register_shapes()
    for arguments in ((x, y), (x.detach(), y.detach()), (x.t(), y.t())):
        torch.library.opcheck(my_op, arguments)
    compiled = torch.compile(my_op, fullgraph=True, backend="aot_eager")
    torch.testing.assert_close(compiled(x, y), my_op(x, y))
    print("opcheck and torch.compile: right")


if __name__ == "__main__":
    main()

"""sin(x) + sin(y) as C++ in a Python string, compiled when the program runs.

It teaches: `load_inline`, the shortest way to C++. It needs a C++ compiler and ninja.

    python examples/sin_add.py
"""

import os
import sys

import torch
from torch.utils.cpp_extension import load_inline

# The ninja of this environment is found whether or not the environment is activated.
os.environ["PATH"] = os.path.dirname(sys.executable) + os.pathsep + os.environ["PATH"]

# No include is needed: load_inline puts torch/extension.h before the source, and makes a Python
# module of the functions that are named below.
SOURCE = """
at::Tensor sin_add(const at::Tensor& x, const at::Tensor& y) {
  return x.sin() + y.sin();
}
"""


def main():
    # Compiled once: a second run with the same source finds the result in a cache of the user's.
    # The name is the module's and has to be one of its own, or another example's is overwritten.
    module = load_inline("lltm_example_sin_add", SOURCE, functions=["sin_add"])
    x, y = torch.randn(3), torch.randn(3)
    torch.testing.assert_close(module.sin_add(x, y), torch.sin(x) + torch.sin(y))
    print("sin_add:", module.sin_add(x, y).tolist())

    # It is made of PyTorch's own operations, so gradients need nothing more.
    leaves = [torch.randn(3, dtype=torch.float64, requires_grad=True) for _ in range(2)]
    assert torch.autograd.gradcheck(module.sin_add, leaves)
    print("gradcheck: right")
    # pybind11 checks types, and torch checks shapes: both are exceptions in Python.
    for wrong in ((1.0, y), (x, torch.randn(2))):
        try:
            module.sin_add(*wrong)
        except (TypeError, RuntimeError) as error:
            print(f"{type(error).__name__}:", str(error).partition("\n")[0])
        else:
            raise AssertionError("wrong arguments were taken")


if __name__ == "__main__":
    main()

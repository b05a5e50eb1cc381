"""Builds swiglu._C: `python setup.py build_ext --inplace`, or `pip install --no-build-isolation .`

SWIGLU_WITH_CUDA=0 or 1 overrides what is found.
"""

import os

import torch
from setuptools import setup
from torch.utils.cpp_extension import CUDA_HOME, BuildExtension, CppExtension, CUDAExtension

HERE = os.path.dirname(os.path.abspath(__file__))

# Never torch.cuda.is_available(): a build machine need not have a GPU.
found = torch.version.cuda is not None and CUDA_HOME is not None
with_cuda = os.environ.get("SWIGLU_WITH_CUDA", str(int(found))) == "1"
sources = ["bindings.cpp", "core/swiglu_host.cpp"]

setup(
    name="swiglu",
    version="0.1.0",
    packages=["swiglu"],
    install_requires=["torch>=2.4"],
    ext_modules=[
        (CUDAExtension if with_cuda else CppExtension)(
            "swiglu._C",
            sources + (["core/swiglu_kernels.cu"] if with_cuda else []),
            include_dirs=[os.path.join(HERE, "core")],
            define_macros=[("SWIGLU_WITH_CUDA", None)] if with_cuda else [],
        )
    ],
    cmdclass={"build_ext": BuildExtension},
)

"""Which files are compiled, and which of them as one."""

import os

# Relative paths: MSVC repeats the source path below the build folder and stops at 260 characters.
APART = (
    "bindings/module.cpp",
    "cuda_core/cell_host_avx512.cpp",
    "cuda_core/cell_host_avx2.cpp",
    "cuda_core/cell_host.cpp",
    "cuda_core/host_isa.cpp",
    "cuda_core/products_host.cpp",
    "cuda_core/step_host.cpp",
)
# Torch's headers are most of their time, so the compiler reads these as one file. Each still
# includes what it needs and compiles alone; what is local to one has a name that no other one uses.
TOGETHER = (
    "bindings/autocast.cpp",
    "bindings/autograd.cpp",
    "bindings/cell.cpp",
    "bindings/fused_cell.cpp",
    "bindings/checks.cpp",
    "bindings/formula.cpp",
    "bindings/layout.cpp",
    "bindings/matrix.cpp",
    "bindings/one_launch.cpp",
    "bindings/products.cpp",
    "bindings/schedule.cpp",
    "bindings/sequence_autograd.cpp",
    "bindings/sequence_backward.cpp",
    "bindings/sequence_checks.cpp",
    "bindings/sequence_chunk.cpp",
    "bindings/sequence_forward.cpp",
    "bindings/sequence_parameters.cpp",
    "bindings/sequence_products.cpp",
    "bindings/tutorial.cpp",
)
HOST_SOURCES = (*APART, *TOGETHER)
CUDA_SOURCES = (
    "cuda_core/cell_fused.cu",
    "cuda_core/cell_kernels.cu",
    "cuda_core/gradient_products.cu",
    "cuda_core/parameter_gradients.cu",
    "cuda_core/sequence.cu",
    "cuda_core/sequence_block.cu",
    "cuda_core/sequence_block_bfloat16.cu",
    "cuda_core/sequence_block_float.cu",
    "cuda_core/sequence_block_half.cu",
    "cuda_core/sequence_grid_bfloat16.cu",
    "cuda_core/sequence_grid_double.cu",
    "cuda_core/sequence_grid_float.cu",
    "cuda_core/sequence_grid_half.cu",
    "cuda_core/sequence_product.cu",
    "cuda_core/split_product.cu",
    "cuda_core/step_fused.cu",
    "cuda_core/step_kernels.cu",
)

# Microsoft's compiler has one instruction set for a whole file: these get flags of their own. GCC
# and Clang find theirs in the files.
MSVC_OWN_FLAGS = {
    "cuda_core/cell_host_avx2.cpp": ["/arch:AVX2"],
    "cuda_core/cell_host_avx512.cpp": ["/arch:AVX512"],
}
# What all host files of the core are told then.
OWN_FLAGS_MACRO = "LLTM_HOST_X86_FLAGS"


def write_together(folder):
    """Writes the file that includes TOGETHER into folder, and returns its path.

    The includes are relative to the checkout, and an unchanged file is left alone: ninja compiles
    again what is newer than its object.
    """
    text = "".join(f'#include "{source}"\n' for source in TOGETHER)
    path = os.path.join(folder, "bindings.cpp")
    try:
        with open(path, encoding="utf-8") as file:
            if file.read() == text:
                return path
    except OSError:
        os.makedirs(folder, exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    return path

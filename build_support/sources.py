"""Which files are compiled."""

# Relative paths: MSVC repeats the source path below the build folder and stops at 260 characters.
HOST_SOURCES = (
    "cuda_core/cell_host.cpp",
    "cuda_core/cell_host_avx2.cpp",
    "cuda_core/cell_host_avx512.cpp",
    "cuda_core/host_isa.cpp",
    "cuda_core/products_host.cpp",
    "cuda_core/step_host.cpp",
    "bindings/autocast.cpp",
    "bindings/autograd.cpp",
    "bindings/cell.cpp",
    "bindings/fused_cell.cpp",
    "bindings/checks.cpp",
    "bindings/formula.cpp",
    "bindings/layout.cpp",
    "bindings/module.cpp",
    "bindings/one_launch.cpp",
    "bindings/products.cpp",
    "bindings/schedule.cpp",
    "bindings/sequence_autograd.cpp",
    "bindings/sequence_backward.cpp",
    "bindings/sequence_checks.cpp",
    "bindings/sequence_chunk.cpp",
    "bindings/sequence_forward.cpp",
    "bindings/sequence_products.cpp",
    "bindings/tutorial.cpp",
)
CUDA_SOURCES = (
    "cuda_core/cell_fused.cu",
    "cuda_core/cell_kernels.cu",
    "cuda_core/sequence.cu",
    "cuda_core/sequence_block.cu",
    "cuda_core/sequence_grid_bfloat16.cu",
    "cuda_core/sequence_grid_float.cu",
    "cuda_core/sequence_grid_half.cu",
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

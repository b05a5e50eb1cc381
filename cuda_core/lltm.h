/* The C ABI of the LLTM cell and of sequences of it: raw pointers in, raw pointers out.
 *
 * Valid C99 and C++14. Needs no CUDA and no framework header. This is the only header of this
 * folder that bindings may include; the functions are in the abi_*.h that it includes.
 *
 * Letters: B = batch_size, H = state_size. All arrays are dense, row-major and aligned to their
 * element. [B, 3H] holds, for each row, the H input gates, the H output gates, the H candidates.
 *
 * The cell, for each of B*H units (a_* are the three gate pre-activations, gates + bias):
 *
 *     input_gate     = sigmoid(a_input)
 *     output_gate    = sigmoid(a_output)
 *     candidate_cell = ELU(a_cell)
 *     new_cell       = old_cell + candidate_cell * input_gate
 *     new_h          = tanh(new_cell) * output_gate
 *
 * Names: lltm_<op>_<cpu|cuda>_<float|double|half|bfloat16>. CPU and CUDA functions share one
 * signature, but multiply, whose CUDA twin takes a workspace. Half types are computed in float and
 * rounded once, when a result is stored.
 *
 * Memory: CUDA functions take device memory of the current device, CPU functions host memory. No
 * function allocates, synchronises, or changes the device. An output overlaps no other argument,
 * unless its comment says so. Every element of every output is written.
 *
 * Null: only pointers marked "or null" may be null. With B*H == 0 nothing is read, written or
 * launched, and every pointer may be null.
 *
 * Stream: CUDA work is enqueued on `stream` (null: the default stream), and the function returns
 * at once. CPU functions ignore it and return when the work is done.
 *
 * Status: 0 = success; -i = argument number i, counted from 1, is invalid; +e = CUDA error e (a
 * cudaError_t) of the launch, or one that an earlier call of the runtime left to be asked for. On a
 * negative status nothing was read, written or launched.
 */
#ifndef LLTM_H_
#define LLTM_H_

#include "abi_cell.h"
#include "abi_products.h"
#include "abi_sequence.h"
#include "abi_step.h"
#include "abi_types.h"

LLTM_EXTERN_C_BEGIN

/* The GPU architectures the CUDA functions were compiled for, such as "800,900"; "" when the
 * compiler does not say (nvcc before 11.5). A static string. */
const char* lltm_cuda_archs(void) LLTM_NOEXCEPT;

LLTM_EXTERN_C_END

#endif /* LLTM_H_ */

/* The C ABI of a sequence in one launch; the rules for all functions are in lltm.h. */
#ifndef LLTM_ABI_SEQUENCE_H_
#define LLTM_ABI_SEQUENCE_H_

#include "abi_types.h"

LLTM_EXTERN_C_BEGIN

/* How all steps of a sequence can be taken in one launch. */
enum {
  LLTM_SEQUENCE_NONE = 0,  /* they cannot: take them one by one */
  LLTM_SEQUENCE_BLOCK = 1, /* a block has a row or two, and all the weights */
  LLTM_SEQUENCE_GRID = 2   /* a block has some units, and blocks exchange h or d_gates */
};

typedef struct {
  int32_t path;      /* LLTM_SEQUENCE_... */
  int32_t blocks;    /* of the launch, where path is LLTM_SEQUENCE_GRID */
  int64_t workspace; /* bytes */
} lltm_sequence_plan;

typedef struct {
  int32_t tf32;         /* of float: not 0 allows the accuracy of TF32 in products */
  void* workspace;      /* as many bytes as the plan of LLTM_SEQUENCE_GRID says for these steps, or
                           more, and this tf32; aligned to 16, for this launch alone */
  int32_t* failure;     /* or null. Set to 1 if a block waited for another one in vain; then every
                           value of the steps concerned is NaN. May be pinned host memory */
  int64_t patience;     /* clocks that a block waits; 0: about a second's */
  int64_t steps_before; /* >= 0, of the same sequence, taken in launches before this one: the
                           forward pass of float goes on as in one launch of all */
} lltm_sequence_options;

/* sequence: all steps in one launch. No CPU twin. T = steps >= 0. The steps are taken from the last
 * to the first if `reverse` is not 0. Each is a step_forward or step_backward without zoneout, its
 * product with the recurrent weights included; without d_h_n nothing flows through the last h.
 * Without h0 it begins with zeros; so does a cell without c0 and cell, and its gradient without
 * d_c_n and d_cell. One of cell and c_n is given. Without a step nothing is read or written.
 *
 * Packed data: step t has the rows [first_rows[t], first_rows[t + 1]) of arrays that begin with row
 * first_rows[0], for [T, B, ...] below. They are rows of the states from the first one on, never
 * more than in the step before and at most B. h0, d_h_n and so on are then those of each row's own
 * first or last step. Rows without any step are left as they are where a state is replaced in its
 * place, h0 by h_n, cell, d_h_n by d_h0 and d_cell; elsewhere they have no value. numbers_to_cuda
 * brings first_rows there without waiting, also while a CUDA graph is captured.
 *
 * sequence_plan says for the current device which kernels there are for the forward pass, or, if
 * `backward` is not 0, the backward pass. Alignment may still forbid LLTM_SEQUENCE_GRID: it wants
 * every array aligned to two elements. With it the caller does the outer products: h0 is null, and
 * the gates of each row's first step hold its product with the weights, if it is not zero; d_h0 is
 * null, and is the product of that step's d_gates. */
#define LLTM_DECLARE_SEQUENCE(name, type, compute)                                               \
  int32_t lltm_sequence_plan_cuda_##name(int32_t backward, int32_t tf32, int64_t steps,          \
                                         int64_t batch_size, int64_t state_size,                 \
                                         lltm_sequence_plan* plan) LLTM_NOEXCEPT;                \
  int32_t lltm_sequence_forward_cuda_##name(                                                     \
      int64_t steps, int64_t batch_size, int64_t state_size,                                     \
      const type* weights,                        /* in  [3H, H] columns of the weights for h */ \
      int64_t weights_stride,                     /* from one row of them to the next, >= H */   \
      int32_t reverse, const int64_t* first_rows, /* in  [T + 1], or null: B rows a step */      \
      const type* bias,                           /* in  [3H], added to all gates; or null */    \
      type* gates,                                /* in  [T, B, 3H]; out: as in step_forward */  \
      const type* h0,                             /* in  [B, H], or null: see above */           \
      const type* c0,                             /* in  [B, H], or null: it is in cell */       \
      compute* cell,                              /* in  [B, H]; out: the last cell; or null */  \
      type* output,                               /* out [T, B, H] */                            \
      type* new_cell,                             /* out [T, B, H], or null */                   \
      type* h_n,                                  /* out [B, H], or null; may be h0 */           \
      type* c_n,                                  /* out [B, H], or null */                      \
      const lltm_sequence_options* options,       /* or null: LLTM_SEQUENCE_BLOCK */             \
      struct CUstream_st* stream) LLTM_NOEXCEPT;                                                 \
  int32_t lltm_sequence_backward_cuda_##name(                                                    \
      int64_t steps, int64_t batch_size, int64_t state_size,                                     \
      const type* weights,                        /* in  [3H, H] */                              \
      int64_t weights_stride,                     /* >= H */                                     \
      int32_t reverse, const int64_t* first_rows, /* in  [T + 1], or null */                     \
      const type* grad_output,                    /* in  [T, B, H], or null */                   \
      const type* activations,                    /* in  [T, B, 3H] */                           \
      const type* new_cell,                       /* in  [T, B, H] */                            \
      const type* d_h_n,                          /* in  [B, H], or null */                      \
      const type* d_c_n,                          /* in  [B, H], or null: it is in d_cell */     \
      compute* d_cell,                            /* in  [B, H]; out: of c0; or null */          \
      type* d_h0,                                 /* out [B, H], or null; may be d_h_n */        \
      type* d_c0,                                 /* out [B, H], or null */                      \
      type* d_gates,                              /* out [T, B, 3H] */                           \
      const lltm_sequence_options* options,       /* or null: LLTM_SEQUENCE_BLOCK */             \
      struct CUstream_st* stream) LLTM_NOEXCEPT;

/* sequence_gradients: what the d_gates of all steps mean for the parameters, for sizes so small
 * that launches take longer than sums; no CPU twin, and not of packed data. N = rows = T * B, and
 * I = input_features. d_weights is the sum of d_gates^T [old_h, input] over all rows, d_bias that
 * of d_gates, in an order that only the sizes decide. The old h of a row is that of the same row in
 * the step before, in the order of `reverse`; before the first step it is h0, or zero. An empty sum
 * is zero. The workspace has as many values as sequence_gradients_workspace_cuda says. */
#define LLTM_DECLARE_SEQUENCE_GRADIENTS(name, type, compute)                                 \
  int32_t lltm_sequence_gradients_cuda_##name(                                               \
      int64_t rows,           /* N >= 0, a multiple of B */                                  \
      int64_t batch_size,     /* B >= 0 */                                                   \
      int64_t state_size,     /* H >= 0 */                                                   \
      int64_t input_features, /* I >= 0 */                                                   \
      int32_t reverse,        /* not 0: from the last step to the first */                   \
      int32_t tf32,           /* of float: not 0 allows the accuracy of TF32 in d_weights */ \
      const type* d_gates,    /* in  [N, 3H] */                                              \
      const type* input,      /* in  [N, I] */                                               \
      const type* h0,         /* in  [B, H], or null */                                      \
      const type* output,     /* in  [N, H] */                                               \
      compute* workspace,     /* for this call alone, aligned to 16 */                       \
      type* d_weights,        /* out [3H, H + I], or null */                                 \
      type* d_bias,           /* out [3H], or null */                                        \
      struct CUstream_st* stream) LLTM_NOEXCEPT;
int64_t lltm_sequence_gradients_workspace_cuda(int64_t rows, int64_t batch_size, int64_t state_size,
                                               int64_t input_features) LLTM_NOEXCEPT;

/* Copies numbers from host memory, which may be changed at once, to the memory of a GPU. */
int32_t lltm_numbers_to_cuda(int64_t count, const int64_t* numbers, /* in  [count], on the host */
                             int64_t* to,                           /* out [count] */
                             struct CUstream_st* stream) LLTM_NOEXCEPT;

LLTM_DECLARE_SEQUENCE(float, float, float)
LLTM_DECLARE_SEQUENCE(double, double, double)
LLTM_DECLARE_SEQUENCE(half, lltm_half, float)
LLTM_DECLARE_SEQUENCE(bfloat16, lltm_bfloat16, float)

LLTM_DECLARE_SEQUENCE_GRADIENTS(float, float, float)
LLTM_DECLARE_SEQUENCE_GRADIENTS(double, double, double)
LLTM_DECLARE_SEQUENCE_GRADIENTS(half, lltm_half, float)
LLTM_DECLARE_SEQUENCE_GRADIENTS(bfloat16, lltm_bfloat16, float)

#undef LLTM_DECLARE_SEQUENCE
#undef LLTM_DECLARE_SEQUENCE_GRADIENTS

LLTM_EXTERN_C_END

#endif /* LLTM_ABI_SEQUENCE_H_ */

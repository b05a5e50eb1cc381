#include <ATen/ops/empty.h>

#include <algorithm>

#include "dispatch.h"
#include "recurrent_product.h"
#include "rows.h"
#include "sequence_chunk.h"
#include "sequence_parameters.h"

namespace lltm_bindings {
namespace {

// The recurrence from the last step to the first, a chunk at a time.
class Recurrence {
 public:
  Recurrence(const SequenceGradients& grads, const SequenceArguments& a, const SequenceSizes& sizes,
             const Schedule& schedule, const SequenceProducts& products, const Way& way,
             int64_t chunks, GradientMask mask)
      : input(a.input),
        schedule(schedule),
        products(products),
        path(way.path),
        reverse(a.reverse),
        wants_d_h0(mask[3]),
        batch_size(sizes.batch_size),
        state_size(sizes.state_size),
        grad_output(dense(grads.output)),
        keep_h(dense(a.zoneout_h)),
        keep_cell(dense(a.zoneout_c)),
        exchange(way.launch, a.input) {
    if (path == Path::kOneLaunch) packed_rows = PackedRows(schedule, a);
    d_h = at::empty({batch_size, state_size}, input.options());
    // What nothing flows through yet is not zero, but absent: zero times NaN would be NaN. Only
    // where rows begin at different steps, or zoneout wants a place, it has to be zero.
    has_d_h =
        grads.h_n.defined() || keep_h.defined() || !schedule.is_uniform() || schedule.steps() == 0;
    // One launch takes d_h_n and d_c_n and gives d_c0 as they are.
    const bool takes_gradients = path == Path::kOneLaunch && chunks == 1;
    if (takes_gradients && schedule.is_uniform() && grads.h_n.defined()) {
      d_h_n = aligned_to_pairs(dense(grads.h_n));
    } else if (grads.h_n.defined()) {
      d_h.copy_(grads.h_n);
    } else if (has_d_h) {
      d_h.zero_();
    }
    if (takes_gradients) {
      d_c_n = aligned_to_pairs(dense(grads.c_n));
      if (mask[4]) d_c0 = at::empty({batch_size, state_size}, input.options());
    } else {
      d_cell = at::empty({batch_size, state_size}, input.options().dtype(compute_dtype(input)));
      grads.c_n.defined() ? d_cell.copy_(grads.c_n) : d_cell.zero_();
    }
    if (path == Path::kFusedSteps) weights_h_t = products.weights_h_transposed();
  }

  // d_gates (rows of the chunk, 3 * state_size) is written; d_h and d_cell go on to the chunk's
  // first step.
  void run(const Chunk& chunk, const at::Tensor& d_gates) {
    with_core(input, [&](auto core, CUstream_st* stream) {
      if (path == Path::kOneLaunch) {
        run_at_once(core, stream, chunk, d_gates);
      } else {
        run_steps(core, stream, chunk, d_gates);
      }
    });
    has_d_h = true;
  }

  // (batch_size, state_size), of the state that the steps so far began with
  at::Tensor d_first_h() const { return d_h; }
  at::Tensor d_first_cell() const {
    return d_cell.defined() ? d_cell.to(input.scalar_type()) : d_c0;
  }

 private:
  template <typename C>
  void run_at_once(const C& core, CUstream_st* stream, const Chunk& chunk,
                   const at::Tensor& d_gates) {
    const bool spread = exchange.options() != nullptr;
    const at::Tensor grad = spread ? aligned_to_pairs(grad_output) : grad_output;
    const at::Tensor activations = spread ? aligned_to_pairs(chunk.activations) : chunk.activations;
    const at::Tensor cells = spread ? aligned_to_pairs(chunk.cells) : chunk.cells;
    check_status(
        core.sequence_backward(
            chunk.end - chunk.begin, batch_size, state_size, C::pointer(products.weights(), 0),
            products.weights().size(1), reverse, packed_rows.of(chunk.begin, chunk.end),
            C::pointer(grad, chunk.all.first), C::pointer(activations, 0), C::pointer(cells, 0),
            has_d_h ? C::pointer(d_h_n.defined() ? d_h_n : d_h, 0) : nullptr, C::pointer(d_c_n, 0),
            C::compute_pointer(d_cell, 0), spread ? nullptr : C::pointer(d_h, 0),
            C::pointer(d_c0, 0), C::pointer(d_gates, 0), exchange.options(), stream),
        "sequence_backward");
    if (spread && (chunk.begin > 0 || wants_d_h0)) {
      const RecurrentProduct<typename C::Scalar> recurrent(products);
      schedule.for_first_rows(chunk.begin, chunk.end, [&](int64_t line, int64_t row, int64_t rows) {
        recurrent.d_old_h(d_h, row, d_gates, line - chunk.all.first, rows, /*add=*/false);
      });
    }
  }

  template <typename C>
  void run_steps(const C& core, CUstream_st* stream, const Chunk& chunk,
                 const at::Tensor& d_gates) {
    const bool fused = path == Path::kFusedSteps;
    const RecurrentProduct<typename C::Scalar> recurrent(products);
    for (int64_t i = chunk.end - 1; i >= chunk.begin; --i) {
      const Step step = schedule[i];
      const int64_t place = step.first - chunk.all.first;
      if (fused && i + 1 < chunk.end) {
        check_status(core.step_fused_backward(
                         step.rows, state_size, C::pointer(weights_h_t, 0),
                         C::pointer(d_gates, schedule[i + 1].first - chunk.all.first),
                         C::pointer(grad_output, step.first), C::pointer(chunk.activations, place),
                         C::pointer(chunk.cells, place), C::mask_pointer(keep_h, step.first),
                         C::mask_pointer(keep_cell, step.first),
                         keep_h.defined() ? C::pointer(d_h, 0) : nullptr,
                         C::compute_pointer(d_cell, 0), C::pointer(d_gates, place), stream),
                     "step_fused_backward");
      } else {
        const bool has_later = has_d_h || i + 1 < chunk.end;
        for_rows(input, step.rows, state_size, [&](int64_t row, int64_t rows) {
          check_status(
              core.step_backward(
                  rows, state_size, C::pointer(grad_output, step.first + row),
                  C::pointer(chunk.activations, place + row), C::pointer(chunk.cells, place + row),
                  C::mask_pointer(keep_h, step.first + row),
                  C::mask_pointer(keep_cell, step.first + row),
                  has_later ? C::pointer(d_h, row) : nullptr, C::compute_pointer(d_cell, row),
                  C::pointer(d_gates, place + row), stream),
              "step_backward");
        });
      }
      // The fused step before this one multiplies by itself, and nobody may want d_h0.
      if ((i > 0 || wants_d_h0) && (!fused || i == chunk.begin)) {
        recurrent.d_old_h(d_h, 0, d_gates, place, step.rows, keep_h.defined());
      }
    }
  }

  const at::Tensor input;
  const Schedule& schedule;
  const SequenceProducts& products;
  const Path path;
  const bool reverse, wants_d_h0;
  const int64_t batch_size, state_size;
  const at::Tensor grad_output, keep_h, keep_cell;
  Exchange exchange;
  PackedRows packed_rows;
  at::Tensor weights_h_t;
  at::Tensor d_h, d_h_n, d_cell, d_c_n, d_c0;
  bool has_d_h;
};

}  // namespace

CellGradients run_sequence_backward(const SequenceGradients& grads, const SequenceArguments& a,
                                    const at::Tensor& output, const at::Tensor& activations,
                                    const at::Tensor& cells, GradientMask mask) {
  const SequenceSizes sizes = check_sequence_backward(grads, a, output, activations, cells);
  mask[3] = mask[3] && a.h0.defined();
  mask[4] = mask[4] && a.c0.defined();
  const Schedule schedule(a, sizes);
  const DeviceScope scope(a.input);
  if (a.input.is_cuda()) check_earlier_launches();
  const int64_t T = schedule.steps();
  const auto options = a.input.options();

  const at::Tensor input = dense(a.input);
  const at::Tensor dense_output = dense(output);
  const at::Tensor h0 = dense(a.h0);
  // A hook of saved tensors may have changed their strides.
  const at::Tensor dense_activations = dense(activations);
  const at::Tensor dense_cells = dense(cells);
  const int64_t chunk_steps = a.recompute ? kStepsPerChunk : (std::max)(T, int64_t(1));
  const int64_t chunks = (T + chunk_steps - 1) / chunk_steps;
  const SequenceProducts products(a, sizes, Pass::kBackward);
  const Way way = choose_way(a, sizes, (std::min)(T, chunk_steps), Pass::kBackward);
  Recurrence recurrence(grads, a, sizes, schedule, products, way, chunks, mask);
  ParameterGradients parameters(a, sizes, chunks, mask);
  at::Tensor d_input;
  if (mask[0]) d_input = at::empty(a.input.sizes(), options);
  const int64_t most_rows = (std::min)(sizes.rows, chunk_steps * sizes.batch_size);
  const at::Tensor all_d_gates = at::empty({most_rows, 3 * sizes.state_size}, options);

  for (int64_t c = chunks - 1; c >= 0; --c) {
    Chunk chunk = {
        c * chunk_steps, (std::min)(T, (c + 1) * chunk_steps), {}, dense_activations, dense_cells};
    chunk.all = schedule.rows_of(chunk.begin, chunk.end);
    const at::Tensor d_gates = rows_from(all_d_gates, 0, chunk.all.rows);
    const auto old_states = [&] { return OldStates(schedule, chunk, h0, as_rows(dense_output)); };
    if (a.recompute) {
      recompute_chunk(chunk, a, schedule, products, input, old_states(), dense_cells.select(0, c));
    }
    recurrence.run(chunk, d_gates);
    // From here on while a GPU is at work.
    if (mask[0]) products.d_input(d_input, chunk.all.first, d_gates);
    if (parameters.sum_at_once(a, sizes, chunk, d_gates, input, h0, dense_output)) continue;
    parameters.add(chunk, d_gates, rows_from(as_rows(input), chunk.all.first, chunk.all.rows),
                   old_states());
  }

  return std::make_tuple(d_input, parameters.d_weights(), parameters.d_bias(),
                         mask[3] ? recurrence.d_first_h() : at::Tensor(),
                         mask[4] ? recurrence.d_first_cell() : at::Tensor());
}

CellGradients sequence_backward(const OptionalTensor& grad_output, const OptionalTensor& grad_h_n,
                                const OptionalTensor& grad_c_n, const at::Tensor& input,
                                const at::Tensor& weights, const OptionalTensor& bias,
                                const OptionalTensor& h0, const OptionalTensor& c0,
                                const at::Tensor& output, const at::Tensor& activations,
                                const at::Tensor& cells, const OptionalTensor& batch_sizes,
                                bool reverse, bool recompute, const OptionalTensor& zoneout_h,
                                const OptionalTensor& zoneout_c, GradientMask mask) {
  const SequenceArguments arguments = sequence_arguments(input, weights, bias, h0, c0, batch_sizes,
                                                         reverse, recompute, zoneout_h, zoneout_c);
  const at::AutoDispatchBelowADInplaceOrView below_autograd;
  const SequenceGradients grads = {tensor_or_undefined(grad_output), tensor_or_undefined(grad_h_n),
                                   tensor_or_undefined(grad_c_n)};
  return run_sequence_backward(grads, arguments, output, activations, cells, mask);
}

}  // namespace lltm_bindings

#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>

#include <algorithm>

#include "dispatch.h"
#include "recurrent_product.h"
#include "rows.h"
#include "schedule.h"
#include "sequence.h"

namespace lltm_bindings {
namespace {

// On a GPU, where nothing is kept, gates have so much memory, or that of kStepsPerChunk. A CPU
// finds those of kStepsPerChunk in its caches.
const int64_t kBytesOfGates = 16 << 20;

int64_t steps_at_once(const SequenceArguments& a, const SequenceSizes& sizes, int64_t steps,
                      Keep keep) {
  if (keep == Keep::kForBackward && !a.recompute) return (std::max)(steps, int64_t(1));
  if (keep == Keep::kForBackward || !a.input.is_cuda()) return kStepsPerChunk;
  const int64_t step = sizes.batch_size * 3 * sizes.state_size * a.input.element_size();
  return (std::max)(kStepsPerChunk, kBytesOfGates / (std::max)(step, int64_t(1)));
}

// In the type that the core computes in.
at::Tensor first_cell(const SequenceArguments& a, const SequenceSizes& sizes) {
  const auto options = a.input.options().dtype(compute_dtype(a.input));
  const int64_t shape[] = {sizes.batch_size, sizes.state_size};
  return a.c0.defined() ? at::empty(shape, options).copy_(a.c0) : at::zeros(shape, options);
}

}  // namespace

SequenceOutputs run_sequence_forward(const SequenceArguments& a, Keep keep) {
  const SequenceSizes sizes = check_sequence(a);
  const Schedule schedule(a, sizes);
  const DeviceScope scope(a.input);
  if (a.input.is_cuda()) check_earlier_launches();
  const int64_t B = sizes.batch_size;
  const int64_t H = sizes.state_size;
  const int64_t N = sizes.rows;
  const int64_t T = schedule.steps();
  const auto options = a.input.options();
  const bool keeps_steps = keep == Keep::kForBackward && !a.recompute;
  const bool keeps_chunks = keep == Keep::kForBackward && a.recompute;

  const at::Tensor input = dense(a.input);
  const int64_t chunk = steps_at_once(a, sizes, T, keep);
  const int64_t chunks = (T + chunk - 1) / chunk;
  const SequenceProducts products(a, sizes, Pass::kForward);
  const at::Tensor gates = at::empty({(std::min)(N, chunk * B), 3 * H}, options);
  const Way way = choose_way(a, sizes, (std::min)(T, chunk), Pass::kForward);
  const bool at_once = way.path == Path::kOneLaunch;
  // The first product before all else: a GPU is at work while the rest is made ready.
  const auto begin_chunk = [&](int64_t begin) {
    const Step all = schedule.rows_of(begin, (std::min)(T, begin + chunk));
    const at::Tensor to = rows_from(gates, 0, all.rows);
    at_once ? products.input_product(to, input, all.first)
            : products.input_gates(to, input, all.first);
  };
  if (T > 0) begin_chunk(0);

  const at::Tensor keep_h = dense(a.zoneout_h);
  const at::Tensor keep_cell = dense(a.zoneout_c);
  // One launch knows that without a state it begins with zeros.
  at::Tensor h0 = dense(a.h0);
  if (!h0.defined() && (!at_once || T == 0)) h0 = at::zeros({B, H}, options);
  // One launch that need not keep its first cell takes c0 and gives c_n as they are.
  const bool carries_cell = !at_once || chunks != 1 || keeps_chunks;
  const at::Tensor c0 = carries_cell ? at::Tensor() : aligned_to_pairs(dense(a.c0));
  const at::Tensor cell = carries_cell ? first_cell(a, sizes) : at::Tensor();
  Exchange exchange(way.launch, a.input);
  // With packed data the rows of two steps differ: the state has a place of its own.
  at::Tensor state_h;
  if (!schedule.is_uniform()) {
    state_h = at::empty({B, H}, options).copy_(h0);
  } else if (at_once && T > 0) {
    state_h = at::empty({B, H}, options);
  }
  SequenceOutputs outputs;
  const bool packed = a.batch_sizes.defined();
  outputs.output = packed ? at::empty({N, H}, options) : at::empty({sizes.steps, B, H}, options);
  const at::Tensor output = at_once ? outputs.output : as_rows(outputs.output);
  if (keeps_steps) outputs.cells = at::empty({N, H}, options);
  const at::Tensor cells = outputs.cells;
  if (keeps_chunks) outputs.cells = at::empty({chunks_of(sizes.steps), B, H}, cell.options());
  if (!carries_cell) outputs.c_n = at::empty({B, H}, options);

  const PackedRows packed_rows = at_once ? PackedRows(schedule, a) : PackedRows();
  with_core(a.input, [&](auto core, CUstream_st* stream) {
    typedef decltype(core) C;
    for (int64_t begin = 0; begin < T; begin += chunk) {
      const int64_t end = (std::min)(T, begin + chunk);
      const Step all = schedule.rows_of(begin, end);
      const at::Tensor chunk_gates = rows_from(gates, 0, all.rows);
      if (begin > 0) begin_chunk(begin);
      if (keeps_chunks) outputs.cells.select(0, begin / chunk).copy_(cell);
      if (at_once) {
        const at::Tensor& old_h = begin == 0 ? h0 : state_h;
        const lltm_sequence_options* const launch_options = exchange.options(begin);
        const bool spread = launch_options != nullptr;
        if (spread && old_h.defined()) {
          const RecurrentProduct<typename C::Scalar> recurrent(products);
          schedule.for_first_rows(begin, end, [&](int64_t line, int64_t row, int64_t rows) {
            recurrent.add_old_h(chunk_gates, line - all.first, old_h, row, rows);
          });
        }
        check_status(
            core.sequence_forward(end - begin, B, H, C::pointer(products.weights(), 0),
                                  products.weights().size(1), a.reverse, packed_rows.of(begin, end),
                                  C::pointer(products.bias(), 0), C::pointer(chunk_gates, 0),
                                  spread ? nullptr : C::pointer(old_h, 0), C::pointer(c0, 0),
                                  C::compute_pointer(cell, 0), C::pointer(output, all.first),
                                  C::pointer(cells, all.first), C::pointer(state_h, 0),
                                  C::pointer(outputs.c_n, 0), launch_options, stream),
            "sequence_forward");
        continue;
      }
      const RecurrentProduct<typename C::Scalar> recurrent(products);
      for (int64_t i = begin; i < end; ++i) {
        const Step step = schedule[i];
        const int64_t place = step.first - all.first;
        // The old h: of the packed state, of the output, or the first.
        const bool first = i == 0;
        const at::Tensor& old_h = state_h.defined() ? state_h : (first ? h0 : output);
        const int64_t old_row = state_h.defined() || first ? 0 : schedule[i - 1].first;
        if (way.path == Path::kFusedSteps) {
          check_status(
              core.step_fused_forward(
                  step.rows, H, C::pointer(products.weights(), 0), products.weights().size(1),
                  C::pointer(chunk_gates, place), C::mask_pointer(keep_h, step.first),
                  C::mask_pointer(keep_cell, step.first), C::pointer(old_h, old_row),
                  C::compute_pointer(cell, 0), C::pointer(output, step.first),
                  C::pointer(cells, step.first), stream),
              "step_fused_forward");
          continue;
        }
        recurrent.add_old_h(chunk_gates, place, old_h, old_row, step.rows);
        for_rows(a.input, step.rows, H, [&](int64_t row, int64_t rows) {
          check_status(
              core.step_forward(rows, H, C::pointer(chunk_gates, place + row),
                                C::mask_pointer(keep_h, step.first + row),
                                C::mask_pointer(keep_cell, step.first + row),
                                C::pointer(old_h, old_row + row), C::compute_pointer(cell, row),
                                C::pointer(output, step.first + row), C::pointer(state_h, row),
                                C::pointer(cells, step.first + row), stream),
              "step_forward");
        });
      }
    }
  });

  if (state_h.defined()) {
    outputs.h_n = state_h;
  } else {
    outputs.h_n = at::empty({B, H}, options);
    outputs.h_n.copy_(T == 0 ? h0 : output.narrow(0, schedule[T - 1].first, B));
  }
  if (carries_cell) outputs.c_n = cell.to(a.input.scalar_type());
  outputs.activations = keeps_steps ? gates : at::empty({0, 3 * H}, options);
  return outputs;
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> sequence(
    const at::Tensor& input, const at::Tensor& weights, const OptionalTensor& bias,
    const OptionalTensor& h0, const OptionalTensor& c0, const OptionalTensor& batch_sizes,
    bool reverse, bool recompute, const OptionalTensor& zoneout_h,
    const OptionalTensor& zoneout_c) {
  const SequenceOutputs outputs =
      run_sequence_forward(sequence_arguments(input, weights, bias, h0, c0, batch_sizes, reverse,
                                              recompute, zoneout_h, zoneout_c),
                           Keep::kNothing);
  return std::make_tuple(outputs.output, outputs.h_n, outputs.c_n);
}

std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor, at::Tensor> sequence_forward(
    const at::Tensor& input, const at::Tensor& weights, const OptionalTensor& bias,
    const OptionalTensor& h0, const OptionalTensor& c0, const OptionalTensor& batch_sizes,
    bool reverse, bool recompute, const OptionalTensor& zoneout_h,
    const OptionalTensor& zoneout_c) {
  const at::AutoDispatchBelowADInplaceOrView below_autograd;
  const SequenceOutputs outputs =
      run_sequence_forward(sequence_arguments(input, weights, bias, h0, c0, batch_sizes, reverse,
                                              recompute, zoneout_h, zoneout_c),
                           Keep::kForBackward);
  return std::make_tuple(outputs.output, outputs.h_n, outputs.c_n, outputs.activations,
                         outputs.cells);
}

}  // namespace lltm_bindings

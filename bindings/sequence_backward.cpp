#include <ATen/ops/addmm.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/zeros.h>

#include <algorithm>

#include "dispatch.h"
#include "rows.h"
#include "schedule.h"
#include "sequence.h"
#include "sequence_products.h"

namespace lltm_bindings {
namespace {

// What forward kept, or computes again, of the steps [begin, end).
struct Chunk {
  int64_t begin, end;
  Step all;                // its rows
  at::Tensor activations;  // (rows, 3 * state_size)
  at::Tensor cells;        // (rows, state_size)
};

// The old h of a chunk's rows: a piece at a time, or all at once where the pieces are many.
class OldStates {
 public:
  OldStates(const Schedule& schedule, const Chunk& chunk, const at::Tensor& h0,
            const at::Tensor& output)
      : pieces_(schedule.old_rows(chunk.begin, chunk.end)) {
    for (const OldRows& piece : pieces_) {
      states_.push_back((piece.from_h0 ? h0 : output).narrow(0, piece.source, piece.rows));
    }
    if (pieces_.size() <= 2) return;
    const at::Tensor all = at::empty({chunk.all.rows, h0.size(1)}, h0.options());
    for (size_t i = 0; i < pieces_.size(); ++i) {
      all.narrow(0, pieces_[i].first - chunk.all.first, pieces_[i].rows).copy_(states_[i]);
    }
    pieces_ = {{false, 0, chunk.all.first, chunk.all.rows}};
    states_ = {all};
  }

  // work(first row in the chunk, rows, their old h)
  template <typename Work>
  void for_each(const Chunk& chunk, const Work& work) const {
    for (size_t i = 0; i < pieces_.size(); ++i) {
      work(pieces_[i].first - chunk.all.first, pieces_[i].rows, states_[i]);
    }
  }

 private:
  std::vector<OldRows> pieces_;
  std::vector<at::Tensor> states_;
};

// The gradients that are sums over all rows, chunk by chunk. Those of half types are summed in
// float where there are several chunks.
class ParameterGradients {
 public:
  ParameterGradients(const SequenceArguments& a, const SequenceSizes& sizes, int64_t chunks,
                     GradientMask mask)
      : state_size_(sizes.state_size), dtype_(a.input.scalar_type()) {
    const auto options =
        a.input.options().dtype(chunks > 1 ? compute_dtype(a.input) : a.input.scalar_type());
    if (mask[1]) d_weights_ = at::zeros(a.weights.sizes(), options);
    if (mask[2] && a.bias.defined()) d_bias_ = at::zeros(a.bias.sizes(), options);
  }

  void add(const Chunk& chunk, const at::Tensor& d_gates, const at::Tensor& input,
           const OldStates& old_states) {
    if (d_bias_.defined()) d_bias_.add_(d_gates.sum(0));
    if (!d_weights_.defined()) return;
    old_states.for_each(chunk, [&](int64_t first, int64_t rows, const at::Tensor& old_h) {
      add_product(d_weights_.narrow(1, 0, state_size_), d_gates.narrow(0, first, rows), old_h);
    });
    add_product(d_weights_.narrow(1, state_size_, d_weights_.size(1) - state_size_), d_gates,
                input);
  }

  at::Tensor d_weights() const { return result(d_weights_); }
  at::Tensor d_bias() const { return result(d_bias_); }

 private:
  void add_product(at::Tensor sum, const at::Tensor& d_gates, const at::Tensor& columns) const {
    if (sum.scalar_type() == dtype_) {
      at::addmm_out(sum, sum, d_gates.t(), columns);
    } else {
      sum.add_(at::mm(d_gates.t(), columns));
    }
  }
  at::Tensor result(const at::Tensor& sum) const { return sum.defined() ? sum.to(dtype_) : sum; }

  int64_t state_size_;
  at::ScalarType dtype_;
  at::Tensor d_weights_, d_bias_;
};

// The forward pass of a chunk once more: its gates in one product, then the activations.
void recompute(Chunk& chunk, const SequenceArguments& a, const Schedule& schedule,
               const SequenceProducts& products, const at::Tensor& input,
               const OldStates& old_states, const at::Tensor& first_cell) {
  const int64_t H = first_cell.size(1);
  chunk.activations = at::empty({chunk.all.rows, 3 * H}, a.input.options());
  chunk.cells = at::empty({chunk.all.rows, H}, a.input.options());
  products.input_gates(chunk.activations, input);
  old_states.for_each(chunk, [&](int64_t first, int64_t rows, const at::Tensor& old_h) {
    products.add_old_h(chunk.activations.narrow(0, first, rows), old_h);
  });
  const at::Tensor cell = first_cell.clone();
  const at::Tensor keep_cell = dense_rows(a.zoneout_c);
  const at::Tensor unused_h = at::empty({cell.size(0), H}, a.input.options());
  with_core(a.input, [&](auto core, CUstream_st* stream) {
    typedef decltype(core) C;
    for (int64_t i = chunk.begin; i < chunk.end; ++i) {
      const Step step = schedule[i];
      const int64_t place = step.first - chunk.all.first;
      for_rows(a.input, step.rows, H, [&](int64_t row, int64_t rows) {
        check_status(core.step_forward(rows, H, C::pointer(chunk.activations, place + row), nullptr,
                                       C::mask_pointer(keep_cell, step.first + row), nullptr,
                                       C::compute_pointer(cell, row), C::pointer(unused_h, row),
                                       nullptr, C::pointer(chunk.cells, place + row), stream),
                     "step_forward");
      });
    }
  });
}

}  // namespace

CellGradients run_sequence_backward(const SequenceGradients& grads, const SequenceArguments& a,
                                    const at::Tensor& output, const at::Tensor& activations,
                                    const at::Tensor& cells, GradientMask mask) {
  const SequenceSizes sizes = check_sequence(a);
  const Schedule schedule(a, sizes);
  const DeviceScope scope(a.input);
  const int64_t B = sizes.batch_size;
  const int64_t H = sizes.state_size;
  const int64_t N = sizes.rows;
  const int64_t T = schedule.steps();
  const auto options = a.input.options();

  const at::Tensor input = dense_rows(a.input);
  const at::Tensor output_rows = dense_rows(output);
  const at::Tensor h0 = dense(a.h0);
  const SequenceProducts products(a, sizes);
  const at::Tensor weights_h_t =
      products.fused() && T > 1 ? products.weights_h_transposed() : at::Tensor();
  const at::Tensor grad_output = dense_rows(grads.output);
  const at::Tensor keep_h = dense_rows(a.zoneout_h);
  const at::Tensor keep_cell = dense_rows(a.zoneout_c);

  const at::Tensor d_h = at::empty({B, H}, options);
  const at::Tensor d_cell = at::empty({B, H}, options.dtype(compute_dtype(a.input)));
  // What nothing flows through yet is not zero, but absent: zero times NaN would be NaN. Only where
  // rows begin at different steps, or zoneout wants a place, it has to be zero.
  bool has_d_h = grads.h_n.defined() || keep_h.defined() || !schedule.is_uniform() || T == 0;
  if (grads.h_n.defined()) {
    d_h.copy_(grads.h_n);
  } else if (has_d_h) {
    d_h.zero_();
  }
  grads.c_n.defined() ? d_cell.copy_(grads.c_n) : d_cell.zero_();

  const int64_t chunk_steps = a.recompute ? kStepsPerChunk : (std::max)(T, int64_t(1));
  const int64_t chunks = (T + chunk_steps - 1) / chunk_steps;
  ParameterGradients parameters(a, sizes, chunks, mask);
  at::Tensor d_input;
  if (mask[0]) d_input = at::empty({N, sizes.input_features}, options);
  const at::Tensor all_d_gates = at::empty({(std::min)(N, chunk_steps * B), 3 * H}, options);

  with_core(a.input, [&](auto core, CUstream_st* stream) {
    typedef decltype(core) C;
    for (int64_t c = chunks - 1; c >= 0; --c) {
      Chunk chunk = {c * chunk_steps, (std::min)(T, (c + 1) * chunk_steps), {}, activations, cells};
      chunk.all = schedule.rows_of(chunk.begin, chunk.end);
      const at::Tensor chunk_input = input.narrow(0, chunk.all.first, chunk.all.rows);
      const at::Tensor d_gates = all_d_gates.narrow(0, 0, chunk.all.rows);
      const OldStates old_states(schedule, chunk, h0, output_rows);
      if (a.recompute) {
        recompute(chunk, a, schedule, products, chunk_input, old_states, cells.select(0, c));
      }
      for (int64_t i = chunk.end - 1; i >= chunk.begin; --i) {
        const Step step = schedule[i];
        const int64_t place = step.first - chunk.all.first;
        const bool fused = products.fused() && i + 1 < chunk.end;
        if (fused) {
          check_status(
              core.step_fused_backward(
                  step.rows, H, C::pointer(weights_h_t, 0),
                  C::pointer(d_gates, schedule[i + 1].first - chunk.all.first),
                  C::pointer(grad_output, step.first), C::pointer(chunk.activations, place),
                  C::pointer(chunk.cells, place), C::mask_pointer(keep_h, step.first),
                  C::mask_pointer(keep_cell, step.first),
                  keep_h.defined() ? C::pointer(d_h, 0) : nullptr, C::compute_pointer(d_cell, 0),
                  C::pointer(d_gates, place), stream),
              "step_fused_backward");
        } else {
          for_rows(a.input, step.rows, H, [&](int64_t row, int64_t rows) {
            check_status(core.step_backward(rows, H, C::pointer(grad_output, step.first + row),
                                            C::pointer(chunk.activations, place + row),
                                            C::pointer(chunk.cells, place + row),
                                            C::mask_pointer(keep_h, step.first + row),
                                            C::mask_pointer(keep_cell, step.first + row),
                                            has_d_h ? C::pointer(d_h, row) : nullptr,
                                            C::compute_pointer(d_cell, row),
                                            C::pointer(d_gates, place + row), stream),
                         "step_backward");
          });
        }
        has_d_h = true;
        // The fused step before this one multiplies by itself, and nobody may want d_h0.
        const bool wanted = i > 0 || mask[3];
        if (wanted && (!products.fused() || i == chunk.begin)) {
          products.d_old_h(d_h.narrow(0, 0, step.rows), d_gates.narrow(0, place, step.rows),
                           keep_h.defined());
        }
      }
      if (mask[0]) products.d_input(d_input.narrow(0, chunk.all.first, chunk.all.rows), d_gates);
      parameters.add(chunk, d_gates, chunk_input, old_states);
    }
  });

  if (mask[0]) d_input = d_input.view(a.input.sizes());
  return std::make_tuple(d_input, parameters.d_weights(), parameters.d_bias(),
                         mask[3] ? d_h : at::Tensor(),
                         mask[4] ? d_cell.to(a.input.scalar_type()) : at::Tensor());
}

CellGradients sequence_backward(const OptionalTensor& grad_output, const OptionalTensor& grad_h_n,
                                const OptionalTensor& grad_c_n, const at::Tensor& input,
                                const at::Tensor& weights, const OptionalTensor& bias,
                                const at::Tensor& h0, const at::Tensor& c0,
                                const at::Tensor& output, const at::Tensor& activations,
                                const at::Tensor& cells, const OptionalTensor& batch_sizes,
                                bool reverse, bool recompute, const OptionalTensor& zoneout_h,
                                const OptionalTensor& zoneout_c, GradientMask mask) {
  const SequenceArguments arguments = sequence_arguments(input, weights, bias, h0, c0, batch_sizes,
                                                         reverse, recompute, zoneout_h, zoneout_c);
  const SequenceGradients grads = {tensor_or_undefined(grad_output), tensor_or_undefined(grad_h_n),
                                   tensor_or_undefined(grad_c_n)};
  check_sequence_backward(grads, arguments, output, activations, cells);
  return run_sequence_backward(grads, arguments, output, activations, cells, mask);
}

}  // namespace lltm_bindings

#include "sequence_chunk.h"

#include <ATen/ops/empty.h>

#include <algorithm>

#include "dispatch.h"
#include "recurrent_product.h"
#include "rows.h"

namespace lltm_bindings {

OldStates::OldStates(const Schedule& schedule, const Chunk& chunk, const at::Tensor& h0,
                     const at::Tensor& output)
    : pieces_(schedule.old_rows(chunk.begin, chunk.end)) {
  if (!h0.defined()) {  // products with zeros
    const auto is_first = [](const OldRows& piece) { return piece.from_h0; };
    pieces_.erase(std::remove_if(pieces_.begin(), pieces_.end(), is_first), pieces_.end());
  }
  for (const OldRows& piece : pieces_) {
    states_.push_back(rows_from(piece.from_h0 ? h0 : output, piece.source, piece.rows));
  }
  if (pieces_.size() <= 2) return;
  // Packed data, and a state with it.
  const at::Tensor all = at::empty({chunk.all.rows, h0.size(1)}, h0.options());
  for (size_t i = 0; i < pieces_.size(); ++i) {
    all.narrow(0, pieces_[i].first - chunk.all.first, pieces_[i].rows).copy_(states_[i]);
  }
  pieces_ = {{false, 0, chunk.all.first, chunk.all.rows}};
  states_ = {all};
}

void recompute_chunk(Chunk& chunk, const SequenceArguments& a, const Schedule& schedule,
                     const SequenceProducts& products, const at::Tensor& input,
                     const OldStates& old_states, const at::Tensor& first_cell) {
  const int64_t H = first_cell.size(1);
  chunk.activations = at::empty({chunk.all.rows, 3 * H}, a.input.options());
  chunk.cells = at::empty({chunk.all.rows, H}, a.input.options());
  products.input_gates(chunk.activations, input, chunk.all.first);
  const at::Tensor cell = first_cell.clone();
  const at::Tensor keep_cell = dense(a.zoneout_c);
  const at::Tensor unused_h = at::empty({cell.size(0), H}, a.input.options());
  with_core(a.input, [&](auto core, CUstream_st* stream) {
    typedef decltype(core) C;
    const RecurrentProduct<typename C::Scalar> recurrent(products);
    old_states.for_each(chunk, [&](int64_t first, int64_t rows, const at::Tensor& old_h) {
      recurrent.add_old_h(chunk.activations, first, old_h, 0, rows);
    });
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

}  // namespace lltm_bindings

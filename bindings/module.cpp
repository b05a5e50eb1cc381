// What PyTorch sees: the operators' schemas and which function serves which device; and the Python
// module lltm_decoupled._C, with the tutorial's raw functions and the build report.
#include <torch/extension.h>
#include <torch/library.h>

#include "autocast.h"
#include "autograd.h"
#include "dispatch.h"
#include "formula.h"
#include "sequence_operators.h"
#include "tutorial.h"

namespace lltm_bindings {

// `cell` is the public operator. The two with an underscore are its differentiable halves; they
// are operators so that torch.compile can trace autograd without looking inside them. Called with
// what requires a gradient, as a graph of make_fx calls them, they give results that do not.
TORCH_LIBRARY(lltm_decoupled, m) {
  m.def(
      "cell(Tensor input, Tensor weights, Tensor? bias, Tensor old_h, Tensor old_cell)"
      " -> (Tensor new_h, Tensor new_cell)");
  m.def(
      "_cell_forward(Tensor input, Tensor weights, Tensor? bias, Tensor old_h, Tensor old_cell)"
      " -> (Tensor new_h, Tensor new_cell, Tensor gates)");
  m.def(
      "_cell_backward(Tensor? grad_h, Tensor? grad_cell, Tensor input, Tensor weights,"
      " Tensor? bias, Tensor old_h, Tensor new_cell, Tensor gates, bool[5] output_mask)"
      " -> (Tensor d_input, Tensor d_weights, Tensor d_bias, Tensor d_old_h, Tensor d_old_cell)");
  m.def(
      "sequence(Tensor input, Tensor weights, Tensor? bias, Tensor? h0=None, Tensor? c0=None,"
      " Tensor? batch_sizes=None, bool reverse=False, bool recompute=False,"
      " Tensor? zoneout_h=None, Tensor? zoneout_c=None)"
      " -> (Tensor output, Tensor h_n, Tensor c_n)");
  m.def(
      "_sequence_forward(Tensor input, Tensor weights, Tensor? bias, Tensor? h0, Tensor? c0,"
      " Tensor? batch_sizes, bool reverse, bool recompute, Tensor? zoneout_h, Tensor? zoneout_c)"
      " -> (Tensor output, Tensor h_n, Tensor c_n, Tensor activations, Tensor cells)");
  m.def(
      "_sequence_backward(Tensor? grad_output, Tensor? grad_h_n, Tensor? grad_c_n, Tensor input,"
      " Tensor weights, Tensor? bias, Tensor? h0, Tensor? c0, Tensor output, Tensor activations,"
      " Tensor cells, Tensor? batch_sizes, bool reverse, bool recompute, Tensor? zoneout_h,"
      " Tensor? zoneout_c, bool[5] output_mask)"
      " -> (Tensor d_input, Tensor d_weights, Tensor d_bias, Tensor d_h0, Tensor d_c0)");
}

TORCH_LIBRARY_IMPL(lltm_decoupled, CPU, m) {
  m.impl("cell", cell);
  m.impl("_cell_forward", cell_forward);
  m.impl("_cell_backward", cell_backward);
  m.impl("sequence", sequence);
  m.impl("_sequence_forward", sequence_forward);
  m.impl("_sequence_backward", sequence_backward);
}

// Registered in a build without CUDA too: the error then says that, and how to rebuild.
TORCH_LIBRARY_IMPL(lltm_decoupled, CUDA, m) {
  m.impl("cell", cell);
  m.impl("_cell_forward", cell_forward);
  m.impl("_cell_backward", cell_backward);
  m.impl("sequence", sequence);
  m.impl("_sequence_forward", sequence_forward);
  m.impl("_sequence_backward", sequence_backward);
}

// Every device that the core has no kernel for.
TORCH_LIBRARY_IMPL(lltm_decoupled, CompositeExplicitAutograd, m) {
  m.impl("cell", cell_formula);
  m.impl("_cell_forward", cell_forward_formula);
  m.impl("_cell_backward", cell_backward_formula);
  m.impl("sequence", sequence_composite);
}

#if TORCH_VERSION_MAJOR >= 2
// torch.func.vmap: PyTorch's own operations know what to do with a mapped dimension. Without these
// it calls the kernel once a sample, and warns.
TORCH_LIBRARY_IMPL(lltm_decoupled, FuncTorchBatched, m) {
  m.impl("cell", cell_formula);
  m.impl("_cell_forward", cell_forward_formula);
  m.impl("_cell_backward", cell_backward_formula);
  m.impl("sequence", sequence_composite);
}
#endif

TORCH_LIBRARY_IMPL(lltm_decoupled, Autograd, m) {
  m.impl("cell", cell_autograd);
  m.impl("sequence", sequence_autograd);
}

TORCH_LIBRARY_IMPL(lltm_decoupled, Autocast, m) {
  m.impl("cell", cell_autocast_cuda);
  m.impl("sequence", sequence_autocast_cuda);
}

TORCH_LIBRARY_IMPL(lltm_decoupled, AutocastCPU, m) {
  m.impl("cell", cell_autocast_cpu);
  m.impl("sequence", sequence_autocast_cpu);
}

namespace {

std::string compiler() {
#if defined(__clang__)
  return "clang " __clang_version__;
#elif defined(__GNUC__)
  return "gcc " __VERSION__;
#elif defined(_MSC_VER)
  return "msvc " + std::to_string(_MSC_FULL_VER);
#else
  return "unknown";
#endif
}

pybind11::dict build_info() {
  pybind11::dict info;
  info["version"] = LLTM_VERSION;
  info["cuda"] = kWithCuda;
  info["cuda_version"] = cuda_version();
  info["archs"] = std::string(cuda_archs());
  info["torch"] = TORCH_VERSION;
  info["compiler"] = compiler();
  return info;
}

}  // namespace
}  // namespace lltm_bindings

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
  typedef pybind11::call_guard<pybind11::gil_scoped_release> ReleaseGil;
  m.doc() = "Compiled part of lltm_decoupled; its operators are in torch.ops.lltm_decoupled.";
  m.def("forward", &lltm_bindings::tutorial_forward, ReleaseGil(), pybind11::arg("input"),
        pybind11::arg("weights"), pybind11::arg("bias"), pybind11::arg("old_h"),
        pybind11::arg("old_cell"));
  m.def("backward", &lltm_bindings::tutorial_backward, ReleaseGil(), pybind11::arg("grad_h"),
        pybind11::arg("grad_cell"), pybind11::arg("new_cell"), pybind11::arg("input_gate"),
        pybind11::arg("output_gate"), pybind11::arg("candidate_cell"), pybind11::arg("X"),
        pybind11::arg("gate_weights"), pybind11::arg("weights"));
  m.def("build_info", &lltm_bindings::build_info);
}

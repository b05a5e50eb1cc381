// The Python module lltm_decoupled._C: the tutorial's raw functions and the build report.
#include <torch/extension.h>

#include "dispatch.h"
#include "tutorial.h"

namespace lltm_bindings {
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

// my_op: 3 * x - y, with its gradient, as an operator of torch's own dispatcher.
#include <ATen/ATen.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/library.h>

namespace {

at::Tensor my_op(const at::Tensor& x, const at::Tensor& y) {
  TORCH_CHECK(x.sizes() == y.sizes(), "my_op: expected x and y of one shape, got ", x.sizes(),
              " and ", y.sizes());
  TORCH_CHECK(x.scalar_type() == y.scalar_type(), "my_op: expected x and y of one dtype, got ",
              x.scalar_type(), " and ", y.scalar_type());
  return 3 * x - y;
}

// Calls my_op again through the dispatcher, which then picks the kernel of the tensor's device.
at::Tensor call_my_op(const at::Tensor& x, const at::Tensor& y) {
  static auto op = c10::Dispatcher::singleton()
                       .findSchemaOrThrow("lltm_example::my_op", "")
                       .typed<at::Tensor(const at::Tensor&, const at::Tensor&)>();
  return op.call(x, y);
}

class MyOp : public torch::autograd::Function<MyOp> {
 public:
  static at::Tensor forward(torch::autograd::AutogradContext*, const at::Tensor& x,
                            const at::Tensor& y) {
    // Without the guard the call would come to my_op_autograd again, without end.
    at::AutoDispatchBelowADInplaceOrView guard;
    return call_my_op(x, y);
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext*,
                                                 torch::autograd::variable_list grads) {
    return {3 * grads[0], -grads[0]};
  }
};

at::Tensor my_op_autograd(const at::Tensor& x, const at::Tensor& y) { return MyOp::apply(x, y); }

}  // namespace

TORCH_LIBRARY(lltm_example, m) { m.def("my_op(Tensor x, Tensor y) -> Tensor"); }

TORCH_LIBRARY_IMPL(lltm_example, CompositeExplicitAutograd, m) { m.impl("my_op", my_op); }

TORCH_LIBRARY_IMPL(lltm_example, Autograd, m) { m.impl("my_op", my_op_autograd); }

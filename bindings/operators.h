// The operators of module.cpp, looked up by name and called through the dispatcher, so that
// tracing and other modes see them.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>

namespace lltm_bindings {

template <typename Signature>
c10::TypedOperatorHandle<Signature> find_operator(const char* name) {
  return c10::Dispatcher::singleton().findSchemaOrThrow(name, "").typed<Signature>();
}

}  // namespace lltm_bindings

// Places in PyTorch that take a known number of instructions: each counts down from what a cell of memory says.
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/empty_like.h>
#include <pybind11/pybind11.h>
#include <torch/library.h>

#include <cstdint>

#include "allocator.h"

namespace counted_laboratory {

int64_t steps = 0;

__attribute__((noinline)) void count_down() {
  for (int64_t left = steps; left > 0; --left) {
    asm volatile("");
  }
}

at::Tensor counting_kernel(const at::Tensor& like) {
  at::Tensor output = at::empty_like(like);
  count_down();
  return output;
}

// Stands where autograd does: counts, then dispatches again.
at::Tensor counting_dispatch(const at::Tensor& like) {
  count_down();
  at::AutoDispatchBelowAutograd below;
  static auto passed_on = c10::Dispatcher::singleton()
                              .findSchemaOrThrow("counted_laboratory::pass_on", "")
                              .typed<at::Tensor(const at::Tensor&)>();
  return passed_on.call(like);
}

at::Tensor plain_kernel(const at::Tensor& like) { return at::empty_like(like); }

at::Tensor meta_kernel(const at::Tensor& like) { return at::empty_like(like); }

}  // namespace counted_laboratory

TORCH_LIBRARY(counted_laboratory, library) {
  library.def("count(Tensor like) -> Tensor");
  library.def("pass_on(Tensor like) -> Tensor");
}

TORCH_LIBRARY_IMPL(counted_laboratory, CPU, library) {
  library.impl("count", &counted_laboratory::counting_kernel);
  library.impl("pass_on", &counted_laboratory::plain_kernel);
}

TORCH_LIBRARY_IMPL(counted_laboratory, Autograd, library) {
  library.impl("pass_on", &counted_laboratory::counting_dispatch);
}

TORCH_LIBRARY_IMPL(counted_laboratory, Meta, library) {
  library.impl("count", &counted_laboratory::meta_kernel);
  library.impl("pass_on", &counted_laboratory::meta_kernel);
}

PYBIND11_MODULE(TORCH_EXTENSION_NAME, module) {
  module.def("set_steps", [](int64_t steps) { counted_laboratory::steps = steps; });
  module.def("install_allocator", [] { laboratory::install_allocator(&counted_laboratory::count_down); });
}

// Places in PyTorch that cost a known time: each spins for as long as a shared cell of memory says.
//
// The spin reads the processor's time-stamp counter and no clock: a sampler loses stacks that end in the vdso.
#include <ATen/Parallel.h>
#include <ATen/ops/empty_like.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <pybind11/pybind11.h>
#include <torch/library.h>
#include <x86intrin.h>

#include <chrono>
#include <cstdint>

#include "allocator.h"

namespace overhead_laboratory {

volatile int64_t no_cost_ns = 0;
volatile int64_t* cost_ns = &no_cost_ns;
double ticks_per_ns = 1.0;

__attribute__((noinline)) void spin() {
  const int64_t requested_ns = *cost_ns;
  if (requested_ns <= 0) {
    return;
  }
  const uint64_t end = __rdtsc() + static_cast<uint64_t>(requested_ns * ticks_per_ns);
  while (__rdtsc() < end) {
  }
}

void calibrate() {
  using clock = std::chrono::steady_clock;
  const auto start = clock::now();
  const uint64_t start_ticks = __rdtsc();
  while (clock::now() - start < std::chrono::milliseconds(20)) {
  }
  const uint64_t ticks = __rdtsc() - start_ticks;
  ticks_per_ns = static_cast<double>(ticks) / std::chrono::nanoseconds(clock::now() - start).count();
}

constexpr auto kMode = c10::DispatchKey::TESTING_ONLY_GenericMode;

void spinning_fallback(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  c10::impl::ExcludeDispatchKeyGuard below(kMode);
  spin();
  op.callBoxed(stack);
}

void enter_mode() { c10::impl::tls_set_dispatch_key_included(kMode, true); }

at::Tensor spinning_kernel(const at::Tensor& like) {
  at::Tensor output = at::empty_like(like);
  spin();
  return output;
}

// Two threads spin, or the second one alone, while the first waits for it.
at::Tensor together_kernel(const at::Tensor& like) {
  at::Tensor output = at::empty_like(like);
  at::parallel_for(0, 2, 1, [](int64_t, int64_t) { spin(); });
  return output;
}

at::Tensor late_kernel(const at::Tensor& like) {
  at::Tensor output = at::empty_like(like);
  at::parallel_for(0, 2, 1, [](int64_t begin, int64_t) {
    if (begin > 0) {
      spin();
    }
  });
  return output;
}

at::Tensor meta_kernel(const at::Tensor& like) { return at::empty_like(like); }

void spinning_function() { spin(); }

}  // namespace overhead_laboratory

TORCH_LIBRARY_IMPL(_, TESTING_ONLY_GenericMode, library) {
  library.fallback(torch::CppFunction::makeFromBoxedFunction<&overhead_laboratory::spinning_fallback>());
}

TORCH_LIBRARY(overhead_laboratory, library) {
  library.def("spin(Tensor like) -> Tensor");
  library.def("spin_together(Tensor like) -> Tensor");
  library.def("spin_late(Tensor like) -> Tensor");
}

TORCH_LIBRARY_IMPL(overhead_laboratory, CPU, library) {
  library.impl("spin", &overhead_laboratory::spinning_kernel);
  library.impl("spin_together", &overhead_laboratory::together_kernel);
  library.impl("spin_late", &overhead_laboratory::late_kernel);
}

TORCH_LIBRARY_IMPL(overhead_laboratory, Meta, library) { library.impl("spin", &overhead_laboratory::meta_kernel); }

PYBIND11_MODULE(TORCH_EXTENSION_NAME, module) {
  overhead_laboratory::calibrate();
  module.def("read_cost_from", [](uintptr_t address) {
    overhead_laboratory::cost_ns = reinterpret_cast<volatile int64_t*>(address);
  });
  module.def("install_allocator", [] { laboratory::install_allocator(&overhead_laboratory::spin); });
  module.def("enter_mode", &overhead_laboratory::enter_mode);
  module.def("spin", &overhead_laboratory::spinning_function);
}

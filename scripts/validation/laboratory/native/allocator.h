// A CPU allocator that does something of ours before what the usual one does.
#pragma once

#include <c10/core/CPUAllocator.h>

namespace laboratory {

class WrappedAllocator final : public c10::Allocator {
 public:
  explicit WrappedAllocator(void (*before)()) : before_(before), wrapped_(c10::GetCPUAllocator()) {}

  c10::DataPtr allocate(size_t size_bytes) override {
    before_();
    return wrapped_->allocate(size_bytes);
  }
  c10::DeleterFnPtr raw_deleter() const override { return wrapped_->raw_deleter(); }
  void copy_data(void* to, const void* from, size_t size_bytes) const override {
    wrapped_->copy_data(to, from, size_bytes);
  }

 private:
  void (*before_)();
  c10::Allocator* wrapped_;
};

inline void install_allocator(void (*before)()) {
  static WrappedAllocator allocator(before);
  c10::SetCPUAllocator(&allocator, /*priority=*/1);
}

}  // namespace laboratory

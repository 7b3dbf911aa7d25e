// A map's value, mapped into our memory.  Internal.
// SPDX-License-Identifier: MIT
#pragma once

#include <sys/mman.h>

#include <cerrno>
#include <cstddef>
#include <utility>

#include "base/error.h"

namespace pe::unwind {

class MappedMemory {
 public:
  MappedMemory() = default;
  /// Throws Error.
  MappedMemory(int map, std::size_t bytes, int protection) : bytes_(bytes) {
    void* start = ::mmap(nullptr, bytes, protection, MAP_SHARED, map, 0);
    if (start == MAP_FAILED)
      throw_errno("eBPF: a map's memory", errno);
    start_ = start;
  }
  MappedMemory(MappedMemory&& other) noexcept
      : start_(std::exchange(other.start_, nullptr)), bytes_(other.bytes_) {}
  MappedMemory& operator=(MappedMemory&& other) noexcept {
    std::swap(start_, other.start_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  MappedMemory(const MappedMemory&) = delete;
  MappedMemory& operator=(const MappedMemory&) = delete;
  ~MappedMemory() {
    if (start_ != nullptr)
      ::munmap(start_, bytes_);
  }

  /// nullptr if nothing is mapped.
  [[nodiscard]] void* start() const noexcept { return start_; }
  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }

 private:
  void* start_ = nullptr;
  std::size_t bytes_ = 0;
};

}  // namespace pe::unwind

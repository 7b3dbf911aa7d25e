// The memory that a walk reads, until too many reads have failed.
//
// A read that fails costs a system call, or an exception of the CPU.  A malicious program could
// have thousands of them in each sample, by a circular list of threads or frames whose fields are
// unreadable.  Honest stacks have a few.  At the limit nothing is readable any more, so that every
// loop ends.  The kernel's programs have the same limit (recording/bpf/limits.bpf.h).
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace pe::languages {

/// The number of failed reads at which a walk ends.
inline constexpr int kMostFailedReads = 32;

template <typename M>
class LimitedMemory {
 public:
  explicit LimitedMemory(M& memory) noexcept : memory_(memory) {}

  /// Fills `into`; false if a part is unreadable.
  bool read(std::uint64_t avma, std::span<std::byte> into) {
    if (is_exhausted())
      return false;
    if (memory_.read(avma, into))
      return true;
    ++failed_;
    return false;
  }
  [[nodiscard]] bool is_exhausted() const noexcept { return failed_ >= kMostFailedReads; }

 private:
  M& memory_;
  int failed_ = 0;
};

}  // namespace pe::languages

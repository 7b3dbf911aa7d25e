// Call chains, as samples have them, of what the kernel's programs found.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include "kernel_unwind/bpf_object.h"
#include "proc/kallsyms.h"

namespace pe::offcpu {

class ChainWriter {
 public:
  /// Appends the kernel's mark and frames, from schedule() on: without how tracing was entered.
  void add_kernel_part(const kernel_unwind::StackOfKernel& stack,
                       std::vector<std::uint64_t>& chain);
  /// Appends the program's.
  static void add_user_part(const kernel_unwind::StackOfKernel& stack,
                            std::vector<std::uint64_t>& chain);

 private:
  [[nodiscard]] std::size_t frames_of_tracing(std::span<const std::uint64_t> frames);
  [[nodiscard]] bool is_switching(std::uint64_t avma);

  bool is_loaded_ = false;
  std::optional<proc::Kallsyms> symbols_;
  std::unordered_map<std::uint64_t, bool> is_switching_;  ///< by return address
};

}  // namespace pe::offcpu

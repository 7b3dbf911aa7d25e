// Makes call chains, as in samples, of the stacks that the kernel's programs found.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include "recording/bpf/bpf_object.h"
#include "stream/proc/kallsyms.h"

namespace pe::offcpu {

class ChainWriter {
 public:
  /// Reads the kernel's symbols, which takes 70 ms; otherwise the first stack does.
  void load();
  /// Appends the kernel's mark and its frames from schedule() on, without those that entered
  /// tracing.
  void add_kernel_part(const unwind::StackOfKernel& stack, std::vector<std::uint64_t>& chain);
  /// Does the same for a waker, from the function that wakes a thread on.  If that is an interrupt,
  /// appends only its own frames.  Returns whether it is one.
  bool add_waking_kernel_part(const unwind::StackOfKernel& stack,
                              std::vector<std::uint64_t>& chain);
  /// Appends the program's frames.
  static void add_user_part(const unwind::StackOfKernel& stack, std::vector<std::uint64_t>& chain);

 private:
  /// Functions of the kernel that matter here.
  enum class Role : std::uint8_t { kOther, kSwitches, kWakes, kEntersInterrupt };

  [[nodiscard]] std::size_t frames_of_tracing(std::span<const std::uint64_t> frames, Role below);
  [[nodiscard]] Role role_of(std::uint64_t avma);

  bool is_loaded_ = false;
  std::optional<stream::Kallsyms> symbols_;
  std::unordered_map<std::uint64_t, Role> roles_;  ///< by return address
};

}  // namespace pe::offcpu

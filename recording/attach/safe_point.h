// Whether a stopped thread may call the dynamic linker for us.
//
// It must hold no lock that loading a library takes: of the allocator, of the linker, of the C
// library.  Its whole stack tells: a function that holds one is on it.  Threads that wait in the
// kernel are in a function of the C library, which then must be one that only waits.
// SPDX-License-Identifier: MIT
#pragma once

#include <sys/types.h>
#include <sys/user.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "base/budget.h"
#include "languages/common/memory_reader.h"
#include "recording/attach/process_image.h"
#include "unwind/address_space.h"
#include "unwind/stacks/images.h"
#include "unwind/walk/walker.h"

namespace pe::recording {

class SafePoint {
 public:
  /// The arguments must outlive this.
  SafePoint(pid_t pid, const ProcessImage& image, Budget& budget);
  SafePoint(const SafePoint&) = delete;
  SafePoint& operator=(const SafePoint&) = delete;
  SafePoint(SafePoint&&) = delete;
  SafePoint& operator=(SafePoint&&) = delete;
  ~SafePoint() = default;

  /// Why the thread is at no safe point; empty if it is at one.  It must be stopped.
  std::string_view why_not(pid_t tid, const user_regs_struct& registers);

  /// Whether a thread that waits in a system call, given by its number, may be at a safe point.
  static bool may_wait_in(std::uint64_t call);
  /// Whether such a call may end with EINTR when its thread is stopped.
  static bool is_interrupted_in(std::uint64_t call);

  /// Whether stacks have been walked before: then little is left to be read about the code.
  [[nodiscard]] bool knows_stacks() const noexcept { return walker_.statistics().stacks > 0; }

 private:
  unwind::WalkResult walk(const user_regs_struct& registers, std::size_t most);
  [[nodiscard]] bool is_own_stack(pid_t tid, const user_regs_struct& registers) const;
  [[nodiscard]] std::string_view why_not(std::span<const unwind::Frame> frames,
                                         bool is_in_call) const;
  [[nodiscard]] std::string_view why_not_waiting(std::uint64_t entered) const;

  pid_t pid_;
  const ProcessImage& image_;
  languages::MemoryReader memory_;
  unwind::Images images_;
  unwind::RuleCache cache_;
  unwind::AddressSpace space_;
  unwind::Walker walker_;
  std::vector<std::byte> stack_;
  std::vector<unwind::Frame> frames_;
  unwind::ThreadHistory history_;  ///< of the last walk
  std::uint64_t main_stack_ = 0;   ///< where the first thread's stack starts; 0: not known
  std::uint64_t call_number_ = 0;  ///< of the system call that the thread is in
};

}  // namespace pe::recording

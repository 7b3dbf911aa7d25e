// Walks a copied stack.  The input is registers and stack bytes.  The output is frames and the
// reason for the end.
//
// Each frame's caller is found by the first of these that helps:
//
//   1. call frame information;
//   2. where none covers the code (JIT compilers, assembly): the frame pointer, if it leads to
//      code;
//   3. for the first frame: the word on top of the stack, if that is code;
//   4. for code that no file describes and that could not be read: the frame of a known stub
//      (x86_64_stubs.h).  A stub whose code can be read has a rule, as if CFI covered it.
// The rule is that of the call, one byte before the return address.  For the first frame, and for a
// frame that a signal interrupted, it is that of the address itself.
//
// A walk never loops: each frame is above the one before (row_step.h describes the exception).  It
// reads only the copied bytes, and does not recurse.  Common rules need rip, rsp and rbp, and
// nothing is allocated.  If a rule needs another register (assembly, prologues of realigned
// stacks), the stack is walked again with all of them, at about a microsecond a frame.
//
// Cost: tests/bench/figures.md.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "unwind/address_space.h"
#include "unwind/walk/frame.h"
#include "unwind/walk/general_walk.h"
#include "unwind/walk/stack_view.h"
#include "unwind/walk/thread_history.h"

namespace pe::unwind {

class Walker {
 public:
  /// `cache` may serve many walkers and spaces, all of one thread.
  explicit Walker(RuleCache& cache) : cache_(cache) {}

  /// Writes frames into `out`, from the innermost on.  The first is `start`'s own ip, so `out`
  /// should not be empty.  The stack should start at the stack pointer, or below.
  WalkResult walk(AddressSpace& space, const WalkStart& start, const StackView& stack,
                  std::span<Frame> out);

  /// Finds the same frames and the same reason faster.  The part that the stack shares with the
  /// thread's last one is compared instead of walked (thread_history.h).
  WalkResult walk(AddressSpace& space, const WalkStart& start, const StackView& stack,
                  std::span<Frame> out, ThreadHistory& history);

  /// Returns the stack pointer of each frame of the last walk, which must have used `history`.  The
  /// innermost is first; there are as many as frames were written, whatever ended the walk.  Each
  /// is the stack pointer before the step to the caller.  This is the CFA of the frame inside, and
  /// the start's stack pointer for the first frame.
  ///
  /// Those of copied frames are collected by this call; other walks do not pay for them.  Valid
  /// until the next walk.
  std::span<const std::uint64_t> stack_pointers(const ThreadHistory& history);

  /// Returns the frame pointer of a frame of the last walk, which must have used an empty history;
  /// 0 if it is unknown.
  [[nodiscard]] std::uint64_t frame_pointer(std::size_t number) const noexcept {
    return number < last_frames_ - last_reused_ ? scratch_.notes[number].fp : 0;
  }

  struct Statistics {
    std::uint64_t stacks = 0;
    std::uint64_t frames = 0;          ///< without the frames copied from histories
    std::uint64_t frames_reused = 0;   ///< copied from histories
    std::uint64_t failed_matches = 0;  ///< of frames whose histories' words then differed
    std::uint64_t general_walks = 0;   ///< stacks that needed all registers
  };
  [[nodiscard]] const Statistics& statistics() const noexcept { return statistics_; }

 private:
  void remember(const WalkResult& result) noexcept;
  void count_stack(const WalkResult& result) noexcept;

  RuleCache& cache_;
  HistoryScratch scratch_;
  std::size_t last_frames_ = 0, last_reused_ = 0;  ///< of the last walk with a history
  Statistics statistics_;
};

}  // namespace pe::unwind

// Walks a copied stack: registers and stack bytes in, frames and a reason for the end out.
//
// Each frame's caller is found by, in this order:
//   1. call frame information;
//   2. where none covers the code (JIT compilers, assembly): the frame pointer, if what it leads to
//      is code;
//   3. for the first frame: the word on top of the stack, if that is code;
//   4. for code that no file describes: as a known stub is left (x86_64_stubs.h), if the code could
//      not be read.  A stub whose code can be read has a rule, as if CFI covered it.
// A rule is looked up for the call, that is one byte before the return address; for the first
// frame and for what a signal interrupted, at the address itself.
//
// Never loops (each frame lies above the one before; row_step.h says where not), reads nothing but
// the copied bytes, and recurses over nothing.  Common rules need rip, rsp and rbp, and nothing is
// allocated.  When one needs another register (assembly, prologues of realigned stacks) the stack
// is walked again with all of them, at about a microsecond a frame.
//
// Cost: tests/bench/figures.md.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "unwind/address_space.h"
#include "unwind/rule_cache.h"
#include "unwind/walk/frame.h"
#include "unwind/walk/stack_view.h"
#include "unwind/walk/thread_history.h"
#include "unwind/walk/walk_start.h"

namespace pe::unwind {

class Walker {
 public:
  /// `cache` may serve many walkers and spaces, of one thread.
  explicit Walker(RuleCache& cache) : cache_(cache) {}

  /// Writes frames from the innermost on into `out`.  The first is `start`'s own ip, so `out`
  /// should not be empty.  The stack should begin at the stack pointer, or below.
  WalkResult walk(AddressSpace& space, const WalkStart& start, const StackView& stack,
                  std::span<Frame> out);

  /// The same frames and the same reason, and quicker: what the thread's stack shares with its
  /// last one is compared instead of walked (thread_history.h).
  WalkResult walk(AddressSpace& space, const WalkStart& start, const StackView& stack,
                  std::span<Frame> out, ThreadHistory& history);

  /// The stack pointer of each frame of the last walk, which must have been given `history`: the
  /// innermost first, as many as were written, whatever ended the walk.  It is the one before the
  /// caller is entered: the CFA of the frame inside, and the start's for the first.
  ///
  /// Those of copied frames are collected when they are asked for; other walks do not pay for
  /// them.  Lives until the next walk.
  std::span<const std::uint64_t> stack_pointers(const ThreadHistory& history);

  struct Statistics {
    std::uint64_t stacks = 0;
    std::uint64_t frames = 0;          ///< without what was taken from histories
    std::uint64_t frames_reused = 0;   ///< taken from histories
    std::uint64_t failed_matches = 0;  ///< of a frame with a history whose rest then differed
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

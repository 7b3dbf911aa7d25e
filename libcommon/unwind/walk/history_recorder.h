// Compares a walk with a ThreadHistory, and then replaces the history.  Internal.
//
// Two numberings meet here: a walk counts frames from the innermost (0), a history from the
// outermost.  If a walk's frame i is the history's frame `match`, its frame i - k has the number
// match + k.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "unwind/walk/frame.h"
#include "unwind/walk/stack_view.h"
#include "unwind/walk/step.h"
#include "unwind/walk/thread_history.h"

namespace pe::unwind {

/// A recorder that does nothing, for walks without a history.
struct NoRecorder {
  static void uses_frame_pointer(std::uint64_t /*value*/, std::size_t /*by*/) noexcept {}
  static void reads_frame_pointer(std::uint64_t /*slot_avma*/, std::size_t /*by*/) noexcept {}
  static void passes_barrier(std::size_t /*by*/) noexcept {}
  static void ends_at_zero(std::uint64_t /*sp*/) noexcept {}
  static void ends_elsewhere(std::size_t /*number*/, std::uint64_t /*sp*/) noexcept {}
  static std::size_t enters(std::size_t /*number*/, const FrameState& /*state*/) noexcept {
    return 0;
  }
};

class HistoryRecorder {
 public:
  /// The walk writes its frames into `out`.
  HistoryRecorder(ThreadHistory& history, HistoryScratch& scratch, const StackView& stack,
                  std::span<Frame> out, std::uint64_t generation);

  /// The step from frame `by` computes its CFA from the frame pointer.
  void uses_frame_pointer(std::uint64_t value, std::size_t by) noexcept {
    scratch_.uses[use_count_++] = {source_, value, read_by_, static_cast<std::uint32_t>(by)};
  }
  /// The step from frame `by` has read the frame pointer from a slot of its frame.
  void reads_frame_pointer(std::uint64_t slot_avma, std::size_t by) noexcept {
    source_ = slot_avma;
    read_by_ = static_cast<std::uint32_t>(by);
  }
  /// The step from frame `by` depends on data that is not compared.
  void passes_barrier(std::size_t by) noexcept {
    last_barrier_ = by;
    source_ = 0;
  }
  /// The stack ended because the word below `sp` was 0.
  void ends_at_zero(std::uint64_t sp) noexcept { zero_end_ = sp; }

  /// Frame `number`, the last one, has been written.  Its stack is not the one that is walked.
  void ends_elsewhere(std::size_t number, std::uint64_t sp) noexcept { scratch_.sps[number] = sp; }

  /// Frame `number` has been written, and `state` belongs to it.  Returns the stack's number of
  /// frames if the rest has been copied from the history; 0 if the walk must continue.
  std::size_t enters(std::size_t number, const FrameState& state) noexcept {
    scratch_.sps[number] = state.sp;
    scratch_.fps[number] = state.fp;
    while (candidates_ != 0 && history_.sps_[candidates_ - 1] < state.sp)
      --candidates_;
    if (candidates_ == 0 || history_.sps_[candidates_ - 1] != state.sp ||
        history_.frames_[candidates_ - 1] != out_[number] ||
        history_.fps_[candidates_ - 1] != state.fp)
      return 0;
    return try_match(number);
  }

  /// The walk has reached the end of the stack after `count` frames, without a match.  Its frames
  /// become the history.
  void keep_whole(std::size_t count);
  /// Does the same after a match, when enters() returned a number.
  void keep_joined();

  [[nodiscard]] std::size_t reused() const noexcept { return match_; }
  [[nodiscard]] std::size_t failed_matches() const noexcept { return failed_matches_; }

 private:
  std::size_t try_match(std::size_t number) noexcept;
  [[nodiscard]] bool has_same_words(std::size_t match, std::size_t number) noexcept;
  [[nodiscard]] std::size_t first_difference(std::size_t match) const noexcept;
  void splice(std::size_t match, std::size_t walked);
  void splice_uses(std::size_t match, std::size_t walked) noexcept;

  ThreadHistory& history_;
  HistoryScratch& scratch_;
  const StackView& stack_;
  std::span<Frame> out_;
  std::size_t candidates_;  ///< number of the history's frames that may still match
  std::size_t use_count_ = 0;
  std::uint64_t source_ = 0;  ///< where the current frame pointer was read
  std::uint32_t read_by_ = 0;
  std::size_t last_barrier_ = ThreadHistory::kNoBarrier;
  std::uint64_t zero_end_ = 0;
  std::size_t match_ = 0, walked_ = 0;
  std::size_t kept_uses_ = 0;     ///< the history's uses by the matched frame and further outside
  std::size_t through_uses_ = 0;  ///< the last of those, whose frame pointer comes from inside
  std::size_t failed_matches_ = 0;
};

}  // namespace pe::unwind

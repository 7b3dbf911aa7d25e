// The last complete stack of a thread, for its next walk (kept_stack.h says what is compared).
//
// Only complete stacks are kept.  A change of the address space that withdraws a rule discards
// them.  28 bytes a frame.
// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "unwind/walk/frame.h"
#include "unwind/walk/kept_stack.h"
#include "unwind/walk/stack_view.h"

namespace pe::unwind {

struct HistoryStorage {
  using Key = Frame;
  struct Extra {};
  template <typename T>
  using Array = std::vector<T>;
};

class ThreadHistory {
 public:
  /// Reserves room for `frames`.  A deeper stack allocates more.
  explicit ThreadHistory(std::size_t frames = 0) { reserve(frames); }

  /// The number of kept frames.
  [[nodiscard]] std::size_t size() const noexcept { return kept_.size(); }
  void forget() noexcept { kept_.forget(); }
  /// The stack pointer of a kept frame; 0 is the outermost.
  [[nodiscard]] std::uint64_t stack_pointer(std::size_t number) const noexcept {
    return kept_.places()[number].sp;
  }
  /// The stack pointer of the outermost frame; 0 if none is kept.
  [[nodiscard]] std::uint64_t root_stack_pointer() const noexcept {
    return size() == 0 ? 0 : stack_pointer(0);
  }

 private:
  friend class HistoryRecorder;

  void reserve(std::size_t frames) {
    if (frames <= room_)
      return;
    kept_.for_each_array([frames](auto& array) {
      array.resize(frames);
      return true;
    });
    room_ = frames;
  }

  KeptStack<HistoryStorage> kept_{};
  std::size_t room_ = 0;
  std::uint64_t needed_end_ = 0;  ///< how far a stack must reach to be compared
  std::uint64_t generation_ = 0;  ///< of the address space; see RuleCache
};

/// Holds the notes of a walk until it is known where the walk joins the history; the innermost
/// frame first.  One serves all threads.
struct HistoryScratch {
  struct Note {
    std::uint64_t fp;
    std::uint64_t fp_slot;  ///< where fp was read; 0: it was in the register
    bool uses_fp;           ///< the step to the caller depends on fp
  };

  void reserve(std::size_t frames) {
    if (frames > sps.size()) {
      sps.resize(frames);
      notes.resize(frames);
    }
  }

  void note(std::size_t number, const FrameState& state) noexcept {
    sps[number] = state.sp;
    notes[number] = {state.fp, 0, false};
  }

  std::vector<std::uint64_t> sps;
  std::vector<Note> notes;
};

// Compares a walk with a ThreadHistory, and then replaces the history.  Internal.

/// A recorder that does nothing, for walks without a history.
struct NoRecorder {
  static void uses_frame_pointer(std::size_t /*by*/) noexcept {}
  static void reads_frame_pointer(std::uint64_t /*slot_avma*/) noexcept {}
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
                  std::span<Frame> out, std::uint64_t generation)
      : history_(history), scratch_(scratch), stack_(stack), out_(out) {
    if (history.generation_ != generation)
      history.forget();
    history.generation_ = generation;
    scratch.reserve(out.size());
    candidates_ = history.needed_end_ <= stack.end() ? history.kept_.before_barrier() : 0;
  }

  /// The step from frame `by` computes its CFA from the frame pointer.
  void uses_frame_pointer(std::size_t by) noexcept { scratch_.notes[by].uses_fp = true; }
  /// The step to the next frame has read the frame pointer from a slot of the stack.
  void reads_frame_pointer(std::uint64_t slot_avma) noexcept { fp_slot_ = slot_avma; }
  /// The step from frame `by` depends on data that is not compared.
  void passes_barrier(std::size_t by) noexcept {
    barrier_ = by + 1;
    fp_slot_ = 0;
  }
  /// The stack ended because the word below `sp` was 0.
  void ends_at_zero(std::uint64_t sp) noexcept { zero_slot_ = sp - architecture::kWordBytes; }

  /// Frame `number`, the last one, has been written.  Its stack is not the one that is walked.
  void ends_elsewhere(std::size_t number, std::uint64_t sp) noexcept {
    scratch_.sps[number] = sp;
    scratch_.notes[number] = {};
  }

  /// Frame `number` has been written, and `state` belongs to it.  Returns the stack's number of
  /// frames if the rest has been copied from the history; 0 if the walk must continue.
  std::size_t enters(std::size_t number, const FrameState& state) noexcept {
    scratch_.sps[number] = state.sp;
    scratch_.notes[number] = {state.fp, std::exchange(fp_slot_, 0), false};
    const Kept& kept = history_.kept_;
    candidates_ = Kept::find_above(kept.places(), state.sp, candidates_);
    if (candidates_ == 0 ||
        !Kept::is_same(kept.places()[candidates_ - 1], kept.details()[candidates_ - 1], state.sp,
                       out_[number], state.fp))
      return 0;
    return try_match(number);
  }

  /// The walk has reached the end of the stack after `count` frames, without a match.  Its frames
  /// become the history.
  void keep_whole(std::size_t count) {
    if (count == 0)
      return history_.forget();
    const std::uint64_t zero_end = zero_slot_ == 0 ? 0 : zero_slot_ + architecture::kWordBytes;
    history_.needed_end_ = std::max(scratch_.sps[count - 1], zero_end);
    history_.reserve(count);
    keep(Kept::kNone, count);
  }
  /// Does the same after a match, when enters() returned a number.
  void keep_joined() {
    history_.reserve(reused_ + 1 + walked_);
    keep(reused_, walked_);
  }

  [[nodiscard]] std::size_t reused() const noexcept { return reused_; }
  [[nodiscard]] std::size_t failed_matches() const noexcept { return failed_matches_; }

 private:
  using Kept = KeptStack<HistoryStorage>;

  /// All words that are compared are between the matched frame's stack pointer and needed_end_, so
  /// they were captured.  Copying during the comparison saves a second loop, whose mispredicted
  /// exit costs as much as ten frames.
  std::size_t try_match(std::size_t number) noexcept {
    const std::size_t match = candidates_ - 1;
    const std::size_t total = number + 1 + match;
    if (total > out_.size()) {
      // Later matches would have as many frames.  Searching for them would cost the square of the
      // depth.
      candidates_ = 0;
      return 0;
    }
    const StackView stack = stack_;
    const Kept::Place* places = history_.kept_.places();
    Frame* outermost = out_.data() + total - 1;
    candidates_ = history_.kept_.joinable(
        match, [&stack](std::uint64_t avma) { return stack.word(avma); },
        [&](std::size_t i) { *(outermost - i) = places[i].key; });  // not counted if words differ
    if (candidates_ > match) {
      reused_ = match;
      walked_ = number;
      return total;
    }
    ++failed_matches_;
    return 0;
  }

  void keep(std::size_t joined, std::size_t count) noexcept {
    history_.kept_.keep(
        {joined, count, barrier_, zero_slot_},
        [this](std::size_t i) {
          const HistoryScratch::Note& note = scratch_.notes[i];
          return Kept::NewFrame{scratch_.sps[i], out_[i], note.fp, note.fp_slot, note.uses_fp};
        },
        [](std::size_t) { return HistoryStorage::Extra(); });
  }

  ThreadHistory& history_;
  HistoryScratch& scratch_;
  const StackView& stack_;
  std::span<Frame> out_;
  std::size_t candidates_;     ///< number of the history's frames that may still match
  std::uint64_t fp_slot_ = 0;  ///< where the next frame's frame pointer was read
  std::size_t barrier_ = 0;    ///< as in NewWalk
  std::uint64_t zero_slot_ = 0;
  std::size_t reused_ = 0;  ///< frames outside of the matched one
  std::size_t walked_ = 0;  ///< frames inside of it
  std::size_t failed_matches_ = 0;
};

}  // namespace pe::unwind

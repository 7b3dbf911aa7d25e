// The last complete stack of a thread, for its next walk (kept_stack.h says what is compared).
//
// Only complete stacks are kept.  A change of the address space that withdraws a rule discards
// them.  28 bytes a frame.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "unwind/walk/frame.h"
#include "unwind/walk/kept_stack.h"
#include "unwind/walk/step.h"

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

}  // namespace pe::unwind

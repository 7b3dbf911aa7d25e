// The last complete stack of a thread.  The next walk need only compare the part that has not
// changed.
//
// Between two samples of a thread, most of its outer frames do not move.  The walk of the new stack
// compares each frame with the old one at the same stack pointer.  If address, stack pointer and
// frame pointer are equal, everything outside follows from the words that the old walk read.  These
// are the return addresses, and the saved frame pointers that a CFA was computed from.  If the new
// stack still has all of these words, a walk would find the old frames, so they are copied.
//
// Frames that may depend on other words are never skipped.  A step by a general row, out of a
// realigned frame, or by a leaf's guess is a *barrier*.  Frames inside the outermost barrier are
// always walked.  Only complete stacks are kept.  A change of the address space that withdraws a
// rule discards them.
//
// Frames are stored outermost first, so that the outer ones keep their numbers.  They are a
// structure of arrays, because the comparison of frames reads two of them.  48 bytes a frame.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "unwind/walk/frame.h"

namespace pe::unwind {

/// Notes that a step computed its CFA from a frame pointer that an earlier step had read.
struct FramePointerUse {
  std::uint64_t slot_avma;  ///< where it was read; 0: it was in the register
  std::uint64_t value;
  std::uint32_t read_by;  ///< number of the frame whose step read it
  std::uint32_t used_by;  ///< ... whose step used it; further outside, or the same
};

class ThreadHistory {
 public:
  /// Reserves room for `frames`.  A deeper stack allocates more.
  explicit ThreadHistory(std::size_t frames = 0) { reserve(frames); }

  /// The number of kept frames.
  [[nodiscard]] std::size_t size() const noexcept { return count_; }
  void forget() noexcept { count_ = 0; }
  /// The stack pointer of the outermost frame; 0 if none is kept.
  [[nodiscard]] std::uint64_t root_stack_pointer() const noexcept {
    return count_ == 0 ? 0 : sps_.front();
  }
  /// The kept frames' stack pointers, the outermost first.
  [[nodiscard]] std::span<const std::uint64_t> stack_pointers() const noexcept {
    return std::span(sps_).first(count_);
  }

 private:
  friend class HistoryRecorder;

  void reserve(std::size_t frames) {
    if (frames > frames_.size()) {
      frames_.resize(frames);
      sps_.resize(frames);
      fps_.resize(frames);
      uses_.resize(frames + kMoreUses);
    }
  }

  static constexpr std::size_t kNoBarrier = ~std::size_t{0};
  /// A frame uses the frame pointer at most once.  The end of the stack may add one use, or a zero
  /// that is stored as a use.
  static constexpr std::size_t kMoreUses = 2;

  std::vector<Frame> frames_;  ///< of these three arrays, only the first count_ elements are in use
  std::vector<std::uint64_t> sps_, fps_;
  std::vector<FramePointerUse> uses_;  ///< the outermost user first
  std::size_t count_ = 0, use_count_ = 0;
  std::size_t barrier_ = kNoBarrier;  ///< frames from this number on (inside) are not matched
  std::uint64_t needed_end_ = 0;      ///< how far a stack must reach to be compared
  std::uint64_t generation_ = 0;      ///< of the address space; see RuleCache
};

/// Holds the notes of a walk until it is known where the walk joins the history; the innermost
/// frame first.  One serves all threads.
struct HistoryScratch {
  void reserve(std::size_t frames) {
    if (frames > sps.size()) {
      sps.resize(frames);
      fps.resize(frames);
      uses.resize(frames + 1);  // a step uses the frame pointer once, and so may the end
    }
  }

  std::vector<std::uint64_t> sps, fps;
  std::vector<FramePointerUse> uses;
};

}  // namespace pe::unwind

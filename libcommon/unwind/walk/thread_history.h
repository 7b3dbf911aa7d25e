// The last complete stack of a thread, so that the next walk need only compare what has stayed.
//
// Between two samples of a thread most of its outer frames do not move.  While the new stack is
// walked, each frame is compared with the old one at the same stack pointer.  Where address,
// stack pointer and frame pointer are equal, everything outside follows from the words that the old
// walk read: the return addresses, and the saved frame pointers that a CFA was computed from.  If
// all of those still stand in the new stack, the old frames are what a walk would find, and are
// copied.
//
// What is not known to follow from those words is never jumped over: a step by a general row, out
// of a realigned frame, or by a leaf's guess is a *barrier*, and frames inside the outermost one
// are always walked.  Only complete stacks are kept; a change of the address space that withdraws
// a rule forgets them.
//
// Frames stand outermost first, so that the outer ones keep their numbers, as a structure of
// arrays: the comparison reads two of them.  32 bytes a frame.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "unwind/walk/frame.h"

namespace pe::unwind {

/// That a step computed its CFA from a frame pointer that an earlier step had read.
struct FramePointerUse {
  std::uint64_t slot_avma;  ///< where it was read; 0: it was in the register
  std::uint64_t value;
  std::uint32_t read_by;  ///< number of the frame whose step read it
  std::uint32_t used_by;  ///< ... and used it; further outside, or the same
};

class ThreadHistory {
 public:
  /// Room for `frames` at once; more is allocated when a deeper stack comes.
  explicit ThreadHistory(std::size_t frames = 0) { reserve(frames); }

  /// How many frames are kept.
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
  /// A frame uses the frame pointer once at most.  The end may be one more, or a zero that is kept
  /// as one.
  static constexpr std::size_t kMoreUses = 2;

  std::vector<Frame> frames_;  ///< of all arrays only the first count_ are in use
  std::vector<std::uint64_t> sps_, fps_;
  std::vector<FramePointerUse> uses_;  ///< outermost user first
  std::size_t count_ = 0, use_count_ = 0;
  std::size_t barrier_ = kNoBarrier;  ///< frames from this number on (inside) are not matched
  std::uint64_t needed_end_ = 0;      ///< how far the stack must reach to be compared
  std::uint64_t generation_ = 0;      ///< of the address space, see RuleCache
};

/// What a walk notes before it is known where it joins the history; innermost frame first.  One
/// serves all threads.
struct HistoryScratch {
  void reserve(std::size_t frames) {
    if (frames > sps.size()) {
      sps.resize(frames);
      fps.resize(frames);
      uses.resize(frames + 1);  // a step uses it once, and so may the end
    }
  }

  std::vector<std::uint64_t> sps, fps;
  std::vector<FramePointerUse> uses;
};

}  // namespace pe::unwind

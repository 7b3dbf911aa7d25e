// Follows saved frame pointers through the copy of a stack of unknown size, such as a goroutine's,
// to learn how far the copy must reach.
//
// Go keeps frame pointers in all of its functions.  In code without them the register holds any
// value, and the chain ends at once, or leads a few frames on.  The stack is untrusted: each frame
// is further out than the one before, and there are at most kMostFrames.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/byte_reader.h"

namespace pe::recording {

class FrameChain {
 public:
  /// The copy starts at `sp`; `fp` is the thread's frame pointer.
  FrameChain(std::uint64_t sp, std::uint64_t fp) : sp_(sp), fp_(fp) {}

  /// Follows the chain in the copy, which may have grown since the last call.  Returns how many
  /// bytes the next frame needs behind it; 0 if the chain has ended.
  std::size_t missing(Bytes copy) noexcept {
    for (; frames_ < kMostFrames && fp_ >= sp_; ++frames_) {
      const std::uint64_t offset = fp_ - sp_;
      if (offset >= copy.size() + kMostFrameBytes)
        return 0;
      if (offset + kFrameEndBytes > copy.size())
        return offset + kFrameEndBytes - copy.size();
      const auto outer = ByteReader(copy.subspan(offset)).take<std::uint64_t>().value_or(0);
      if (outer <= fp_)
        return 0;
      fp_ = outer;
    }
    return 0;
  }

 private:
  /// The unwinder stops at the same number.
  static constexpr unsigned kMostFrames = 4096;
  /// A larger distance is taken for a value that is no frame pointer.
  static constexpr std::uint64_t kMostFrameBytes = 65'536;
  /// The saved frame pointer, the return address, and the arguments of a thread's first functions.
  static constexpr std::uint64_t kFrameEndBytes = 256;

  std::uint64_t sp_;
  std::uint64_t fp_;
  unsigned frames_ = 0;
};

}  // namespace pe::recording

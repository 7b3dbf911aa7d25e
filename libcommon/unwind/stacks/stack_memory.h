// Remembers the outer part of a thread's stack, to continue a stack whose copy was cut.
//
// Outer frames live long: while the inner part of a deep stack changes, its outer part stays for
// many samples.  Each frame is stored with its caller.  The key is the frame's address and stack
// pointer.  The entry also has a hash of the *body* between the frame inside and the frame itself.
//
// A cut stack is continued from its outermost frame if address, stack pointer and body are the same
// as the last time.  The frame is then assumed to have the same caller, and so on outwards.
//
// This is a heuristic.  It is wrong if a frame with the same body was since entered again from
// elsewhere.  Measured on clang: tests/bench/figures.md.
// SPDX-License-Identifier: MIT
#pragma once

#include <boost/unordered/unordered_flat_map.hpp>
#include <cstddef>
#include <cstdint>
#include <span>

#include "unwind/walk/frame.h"
#include "unwind/walk/stack_view.h"

namespace pe::unwind {

/// The known part of a stack: its frames and their stack pointers, the innermost first.
struct KnownStack {
  std::span<const Frame> frames;
  std::span<const std::uint64_t> stack_pointers;
};

class StackMemory {
 public:
  /// Stores the innermost `fresh` frames of a complete stack, and the next frame outside.  The
  /// others are known from an earlier stack.
  void learn(const KnownStack& known, std::size_t fresh, const StackView& stack);

  /// Writes the callers of the outermost frame of a cut stack into `out`.  Returns their number up
  /// to the root; 0 if they are unknown, or more than `out` can hold.
  std::size_t callers(const KnownStack& cut, const StackView& stack, std::span<Frame> out) const;

 private:
  struct Place {
    Frame frame;
    std::uint64_t sp;
    bool operator==(const Place&) const = default;
  };
  struct PlaceHash {
    std::size_t operator()(const Place& place) const noexcept;
  };
  struct Caller {
    Place place;         ///< sp 0: there is no caller, the frame is the root
    std::uint64_t body;  ///< hash of the body
  };

  /// An entry takes 60 bytes.  The limit allows a few hundred different stacks of a deep recursion.
  static constexpr std::size_t kMaxFrames = 32'768;

  boost::unordered_flat_map<Place, Caller, PlaceHash> callers_;
};

}  // namespace pe::unwind

// What is known of the outer part of a thread's stack, to continue a stack whose copy was cut.
//
// Outer frames live long: while the inner part of a deep stack moves, its outer part stays for
// many samples.  Each frame seen is kept with its caller, under its address and stack pointer, and
// with a hash of the *body* between the frame inside and itself.  A cut stack is continued from its
// outermost frame where address, stack pointer and body are those of the last time: then it is
// taken to have the same caller, and so on outwards.
//
// That is a heuristic: it is wrong when a frame with the same body was entered again from
// elsewhere since.  Measured on clang: tests/bench/figures.md.
// SPDX-License-Identifier: MIT
#pragma once

#include <boost/unordered/unordered_flat_map.hpp>
#include <cstddef>
#include <cstdint>
#include <span>

#include "unwind/walk/frame.h"
#include "unwind/walk/stack_view.h"

namespace pe::unwind {

/// A stack as far as it is known: frames and the stack pointer of each, the innermost first.
struct KnownStack {
  std::span<const Frame> frames;
  std::span<const std::uint64_t> stack_pointers;
};

class StackMemory {
 public:
  /// Takes in the innermost `fresh` frames of a complete stack, and the one behind them; the
  /// others are known from an earlier one.
  void learn(const KnownStack& known, std::size_t fresh, const StackView& stack);

  /// Writes the callers of the outermost frame of a cut stack into `out`; how many there are up to
  /// the root, or 0 if they are not known, or more than `out` can hold.
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
    Place place;         ///< sp 0: there is none, the frame is the root
    std::uint64_t body;  ///< hash
  };

  /// 60 bytes each: a few hundred different stacks of a deep recursion.
  static constexpr std::size_t kMaxFrames = 32'768;

  boost::unordered_flat_map<Place, Caller, PlaceHash> callers_;
};

}  // namespace pe::unwind

// A stack made of words and a walker, for walks that a test can read.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <vector>

#include "support/fake_code.h"
#include "unwind/walk/general_walk.h"
#include "unwind/walk/walker.h"

namespace pe::testing {

inline constexpr std::uint64_t kFakeStack = 0x7fff'0000;

/// The address of word `index` of the stack.
constexpr std::uint64_t slot(std::uint64_t index) { return kFakeStack + 8 * index; }

struct Walked {
  std::vector<unwind::Frame> frames;
  unwind::Stop stop;
  unwind::FrameState last;
  std::vector<std::uint64_t> sps = {};  ///< stack pointers; empty after a walk() without a history

  /// Compares the frames and the stop alone.
  bool operator==(const Walked& other) const {
    return frames == other.frames && stop == other.stop;
  }
  [[nodiscard]] std::vector<std::uint64_t> addresses() const {
    std::vector<std::uint64_t> result;
    for (const unwind::Frame frame : frames)
      result.push_back(frame.address());
    return result;
  }
};

inline unwind::StackView view_of(const std::vector<std::uint64_t>& words) {
  return {kFakeStack, std::as_bytes(std::span(words))};
}

/// walk() uses the cache, walk_slowly() computes all registers; the caller compares their results.
inline Walked walk(unwind::Walker& walker, unwind::AddressSpace& space,
                   const unwind::WalkStart& start, const std::vector<std::uint64_t>& words,
                   unwind::ThreadHistory* history = nullptr, std::size_t max_frames = 64) {
  std::vector<unwind::Frame> out(max_frames);
  const auto result = history == nullptr ? walker.walk(space, start, view_of(words), out)
                                         : walker.walk(space, start, view_of(words), out, *history);
  out.resize(result.frames);
  Walked walked{out, result.stop, result.last};
  if (history != nullptr) {
    const auto sps = walker.stack_pointers(*history);
    walked.sps.assign(sps.begin(), sps.end());
  }
  return walked;
}

inline Walked walk_slowly(unwind::AddressSpace& space, const unwind::WalkStart& start,
                          const std::vector<std::uint64_t>& words, std::size_t max_frames = 64) {
  std::vector<unwind::Frame> out(max_frames);
  unwind::HistoryScratch scratch;
  scratch.reserve(max_frames);
  const auto result = unwind::walk_with_all_registers(space, start, view_of(words), out, &scratch);
  out.resize(result.frames);
  scratch.sps.resize(result.frames);
  return {out, result.stop, result.last, scratch.sps};
}

}  // namespace pe::testing

// SPDX-License-Identifier: MIT
#include "unwind/stacks/stack_memory.h"

#include <algorithm>
#include <array>

namespace pe::unwind {
namespace {

constexpr std::uint64_t kBytesOfWord = sizeof(std::uint64_t);
constexpr std::uint64_t kMultiplier = 0x9e3779b97f4a7c15;  // 2^64 / golden ratio

/// Hashes the words of [start, end) that are in `stack`.  Of a large body it hashes only the outer
/// part, where the saved registers are.  It uses four lanes, as each multiplication waits for the
/// one before.
std::uint64_t hash_of_body(const StackView& stack, std::uint64_t start,
                           std::uint64_t end) noexcept {
  constexpr std::uint64_t kMaxBodyBytes = 1024;
  constexpr std::size_t kLanes = 4;
  std::array<std::uint64_t, kLanes> lanes{end - start, 1, 2, 3};
  if (end - start > kMaxBodyBytes)
    start = end - kMaxBodyBytes;
  std::uint64_t at = start;
  const auto mix = [&](std::size_t lane) {
    lanes[lane] = (lanes[lane] ^ stack.word(at + lane * kBytesOfWord)) * kMultiplier;
    lanes[lane] ^= lanes[lane] >> 32U;
  };
  for (; end - at >= kLanes * kBytesOfWord && stack.has_word(at + (kLanes - 1) * kBytesOfWord);
       at += kLanes * kBytesOfWord)
    for (std::size_t lane = 0; lane < kLanes; ++lane)
      mix(lane);
  for (; end - at >= kBytesOfWord && stack.has_word(at); at += kBytesOfWord)
    mix(0);
  std::uint64_t hash = 0;
  for (const std::uint64_t lane : lanes)
    hash = (hash ^ lane) * kMultiplier;
  return hash;
}

std::uint64_t body_of(const KnownStack& known, std::size_t frame, const StackView& stack) noexcept {
  const std::uint64_t end = known.stack_pointers[frame];
  const std::uint64_t start = frame == 0 ? end : known.stack_pointers[frame - 1];
  return hash_of_body(stack, std::min(start, end), end);
}

}  // namespace

std::size_t StackMemory::PlaceHash::operator()(const Place& place) const noexcept {
  const std::uint64_t hash =
      (place.frame.address() * kMultiplier ^ place.sp / kBytesOfWord) * kMultiplier;
  return hash ^ hash >> 32U;
}

void StackMemory::learn(const KnownStack& known, std::size_t fresh, const StackView& stack) {
  if (callers_.size() > kMaxFrames)
    callers_.clear();
  const std::size_t count = known.frames.size();
  // The next frame outside is also new: the memory inside it has changed.
  const std::size_t new_ones = callers_.empty() ? count : std::min(fresh + 1, count);
  for (std::size_t i = 0; i < new_ones; ++i) {
    const Place place{known.frames[i], known.stack_pointers[i]};
    const Place caller = i + 1 < count ? Place{known.frames[i + 1], known.stack_pointers[i + 1]}
                                       : Place{Frame(0), 0};
    callers_[place] = {caller, body_of(known, i, stack)};
  }
}

std::size_t StackMemory::callers(const KnownStack& cut, const StackView& stack,
                                 std::span<Frame> out) const {
  if (cut.frames.empty())
    return 0;
  const std::size_t last = cut.frames.size() - 1;
  const auto edge = callers_.find(Place{cut.frames[last], cut.stack_pointers[last]});
  if (edge == callers_.end() || edge->second.body != body_of(cut, last, stack))
    return 0;
  std::size_t count = 0;
  for (Place next = edge->second.place; next.sp != 0;) {
    // Stack pointers rise from caller to caller, so this loop ends.
    const auto found = callers_.find(next);
    if (found == callers_.end() || count == out.size())
      return 0;
    out[count++] = next.frame;
    if (found->second.place.sp != 0 && found->second.place.sp <= next.sp)
      return 0;
    next = found->second.place;
  }
  return count;
}

}  // namespace pe::unwind

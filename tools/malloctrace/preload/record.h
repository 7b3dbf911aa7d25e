// What the hooks do besides calling the real function: count blocks that come and go.
//
// Where every allocation counts, each passes through here.  Where they are sampled, nearly all are
// told apart in the hooks, by two numbers: the bytes to the thread's next sample, and a filter that
// knows which addresses may be those of samples.
// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "malloctrace/preload/tracer.h"

namespace pe::malloctrace {

/// How many samples have an address like that, up to 255, from where on it stays.  With `mask` 0
/// there is one entry for all, which says whether frees must be looked at.
struct Filter {
  static constexpr std::size_t kSize = std::size_t{1} << 15;
  std::array<std::uint8_t, kSize> counts;
  std::uint64_t mask;

  std::uint8_t& of(const void* memory) noexcept {
    constexpr unsigned kShift = 64 - 15;
    const auto avma = reinterpret_cast<std::uint64_t>(memory);
    return counts[(avma * 0x9e3779b97f4a7c15) >> kShift & mask];
  }
};
// NOLINTNEXTLINE(cppcoreguidelines-avoid-non-const-global-variables,bugprone-dynamic-static-initializers)
extern constinit Filter filter;

/// Whether an allocation is one of those between two samples: then that is all.
inline bool passes_between_samples(std::size_t bytes) noexcept {
  const std::uint64_t left = thread_state.sample_left;
  if (bytes >= left)
    return false;
  thread_state.sample_left = left - bytes;
  return true;
}
/// Whether a block that is freed cannot be one that is known.
inline bool is_no_sample(const void* memory) noexcept { return filter.of(memory) == 0; }

/// `memory` has been allocated by a hook whose frame is `frame` (__builtin_frame_address(0));
/// nullptr says that it was refused.
void record_block(const void* memory, std::size_t bytes, const void* frame) noexcept;
/// The same for memory that the program has mapped.
void record_mapping(const void* memory, std::size_t bytes, const void* frame) noexcept;
/// `memory` is about to be freed.  Its site is 0 if it was not known.
Block forget_block(const void* memory) noexcept;
/// What is known of mappings there is about to be unmapped, or has been by one that was put over
/// it.
void forget_mapping(const void* memory, std::size_t bytes) noexcept;

/// A block that realloc(3) may free, move or leave alone: what was known of it is taken away first,
/// and put back if it has failed.
class Reallocation {
 public:
  /// Before.
  explicit Reallocation(const void* memory) noexcept;
  /// After: the block is gone, or another now.
  void succeed() noexcept;
  /// After: it stays.
  void fail() noexcept;

 private:
  const void* memory_;
  Block block_{};
};

}  // namespace pe::malloctrace

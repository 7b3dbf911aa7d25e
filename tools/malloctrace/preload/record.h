// The work of the hooks beyond calling the real function: they count blocks that come and go.
//
// If every allocation counts, each one passes through here.  If allocations are sampled, the hooks
// skip nearly all of them.  Two numbers suffice for that: the bytes to the thread's next sample,
// and a filter of the addresses that may be those of samples.
// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "malloctrace/preload/process.h"
#include "malloctrace/preload/tracer.h"

namespace pe::malloctrace {

/// Counts the samples whose addresses have the same hash.  A count stays at 255 once it has reached
/// it.  With `mask` 0 there is one entry for all addresses, which shows whether frees must be
/// checked.
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

/// Whether an allocation is between two samples: then nothing else is to be done.
inline bool passes_between_samples(std::size_t bytes) noexcept {
  const std::uint64_t left = thread_state.sample_left;
  if (bytes >= left)
    return false;
  thread_state.sample_left = left - bytes;
  return true;
}
/// Whether a block that is freed cannot be a known one.
inline bool is_no_sample(const void* memory) noexcept { return filter.of(memory) == 0; }

/// Whose block it is.
enum class Owner : std::uint8_t {
  kMalloc,
  kInterpreter,  ///< an interpreter's own allocator, which may place it in a block of malloc
};

/// A hook whose frame is `frame` (__builtin_frame_address(0)) has allocated `memory`; nullptr means
/// that the allocator refused.
void record_block(const void* memory, std::size_t bytes, const void* frame,
                  Owner owner = Owner::kMalloc) noexcept;
/// The same for memory that the program has mapped.
void record_mapping(const void* memory, std::size_t bytes, const void* frame) noexcept;
/// `memory` is about to be freed.
void forget_block(const void* memory) noexcept;
/// The allocator itself is about to free `memory`.  Mostly this is not a block that counts.
void forget_inner_block(const void* memory) noexcept;
/// The same of a block of an interpreter, which may be older than the trace.
void forget_object(const void* memory) noexcept;
/// Forgets mappings in a range that are about to be unmapped, or that a new mapping has just
/// replaced.
void forget_mapping(const void* memory, std::size_t bytes) noexcept;

/// A block that realloc(3) may free, move or leave alone.  It is removed from the live blocks
/// first, and added again if realloc(3) fails.
class Reallocation {
 public:
  /// To be called before realloc(3).
  explicit Reallocation(const void* memory, Owner owner = Owner::kMalloc) noexcept;
  /// To be called afterwards: the block is gone, or is now another.
  void succeed() noexcept;
  /// To be called afterwards: the block remains.
  void fail() noexcept;

 private:
  const void* memory_;
  Owner owner_;
  Block block_{};
};

}  // namespace pe::malloctrace

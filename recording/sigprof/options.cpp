// SPDX-License-Identifier: MIT
#include "recording/sigprof/options.h"

#include <algorithm>
#include <cstddef>
#include <cstring>

namespace pe::inprocess {
namespace {

/// Sizes of the structures in the first version.
constexpr std::size_t kFirstOptionsBytes = 32, kFirstCountsBytes = 96;
static_assert(sizeof(sp_sigprof_options) >= kFirstOptionsBytes);
static_assert(sizeof(sp_sigprof_counts) >= kFirstCountsBytes);
constexpr std::size_t kMostBytes = 4096;  ///< maximum size in any version

constexpr std::uint32_t kLeastStackBytes = 256, kMostStackBytes = 63 * 1024;
constexpr std::uint32_t kMostStopMs = 3'600'000;

/// Sets `to`, unless `value` is 0.  False if `value` is neither 0 nor in its range.
bool take(std::uint32_t value, std::uint32_t least, std::uint32_t most,
          std::uint32_t& to) noexcept {
  if (value == 0)
    return true;
  if (value < least || value > most)
    return false;
  to = value;
  return true;
}

bool are_zeros(const std::byte* from, const std::byte* to) noexcept {
  return std::all_of(from, to, [](std::byte byte) { return byte == std::byte{0}; });
}

}  // namespace

std::optional<Options> check_options(const sp_sigprof_options* asked) noexcept {
  Options options;
  if (asked == nullptr)
    return options;
  const auto* bytes = reinterpret_cast<const std::byte*>(asked);
  if (asked->size < kFirstOptionsBytes || asked->size > kMostBytes)
    return std::nullopt;
  sp_sigprof_options known = SP_SIGPROF_OPTIONS;
  if (asked->size > sizeof known && !are_zeros(bytes + sizeof known, bytes + asked->size))
    return std::nullopt;
  std::memcpy(&known, asked, std::min(asked->size, sizeof known));
  if (!take(known.hz, kLeastHz, kMostHz, options.hz) ||
      !take(known.stack_bytes, kLeastStackBytes, kMostStackBytes, options.stack_bytes) ||
      !take(known.ring_bytes, kLeastRingBytes, kMostRingBytes, options.ring_bytes) ||
      !take(known.stop_ms, 1, kMostStopMs, options.stop_ms) || known.clock > SP_SIGPROF_WALL ||
      known.threads > SP_SIGPROF_THIS_THREAD)
    return std::nullopt;
  options.clock = known.clock == SP_SIGPROF_WALL ? Clock::kWall : Clock::kCpu;
  options.only_chosen_threads = known.threads == SP_SIGPROF_THIS_THREAD;
  options.fit();
  return options;
}

void copy_counts(const sp_sigprof_counts& counts, sp_sigprof_counts& to) noexcept {
  const std::size_t size = to.size;
  if (size < kFirstCountsBytes || size > kMostBytes)
    return;
  std::memset(&to, 0, size);
  std::memcpy(&to, &counts, std::min(size, sizeof counts));
  to.size = size;
}

}  // namespace pe::inprocess

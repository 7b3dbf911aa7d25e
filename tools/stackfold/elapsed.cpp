// SPDX-License-Identifier: MIT
#include "stackfold/elapsed.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/clock.h"

namespace pe::fold {
namespace {

/// No machine runs more at once.
constexpr std::uint64_t kMostThreads = 1U << 20U;

/// A stack and its time, of which the counts lack a part below a microsecond.
struct Share {
  std::span<const folded::FrameId> frames;
  std::uint64_t us;
  double rest;
};

void collect(const folded::FoldedCounts& from, double us_per_count, std::vector<Share>& shares) {
  from.for_each([&](std::span<const folded::FrameId> frames, folded::Count count) {
    const double us = count.as_double() * us_per_count;
    shares.push_back({frames, static_cast<std::uint64_t>(us), us - std::floor(us)});
  });
}

double sum_of(const folded::FoldedCounts& counts) {
  double sum = 0;
  counts.for_each([&](auto, folded::Count count) { sum += count.as_double(); });
  return sum;
}

}  // namespace

void ElapsedTime::add_running(std::span<const folded::FrameId> stack, std::uint64_t period_ns,
                              std::uint64_t running) {
  const std::uint64_t threads = std::clamp<std::uint64_t>(running, 1, kMostThreads);
  const std::uint64_t rest = period_ns % threads;
  running_.add(stack,
               {.whole = period_ns / threads,
                .billionths = static_cast<std::uint32_t>(rest * folded::Count::kOne / threads)});
}

void ElapsedTime::add_silence(std::span<const folded::FrameId> stack, std::uint64_t ns) {
  silent_.add(stack, {.whole = ns});
}

void ElapsedTime::add_to(folded::FoldedCounts& counts) const {
  const auto whole_us = whole_ns_ / kNsPerUs + (whole_ns_ % kNsPerUs >= kNsPerUs / 2 ? 1 : 0);
  const double whole = static_cast<double>(whole_us);
  constexpr double kUsPerNs = 1.0 / static_cast<double>(kNsPerUs);
  const double silent = sum_of(silent_) * kUsPerNs, running = sum_of(running_);
  // Rounding and times that two CPUs noted at once may exceed the recording a little.
  const double silent_scale = silent > whole ? whole / silent : 1;
  const double left = whole - silent * silent_scale;
  std::vector<Share> shares;
  collect(silent_, kUsPerNs * silent_scale, shares);
  const folded::FrameId unsampled[] = {frames_.intern("[ran, but was not sampled]")};
  if (running > 0)
    collect(running_, left / running, shares);
  else if (left >= 1)
    shares.push_back({unsampled, static_cast<std::uint64_t>(left), left - std::floor(left)});
  // The stacks with the largest rests get what rounding down has left over.
  std::uint64_t given = 0;
  for (const Share& share : shares)
    given += share.us;
  std::vector<Share*> by_rest;
  for (Share& share : shares)
    by_rest.push_back(&share);
  std::ranges::stable_sort(by_rest, std::ranges::greater(), &Share::rest);
  for (std::size_t i = 0; given < whole_us && !by_rest.empty(); ++given, ++i)
    ++by_rest[i % by_rest.size()]->us;
  for (const Share& share : shares)
    if (share.us > 0)
      counts.add(share.frames, {.whole = share.us});
}

}  // namespace pe::fold

// SPDX-License-Identifier: MIT
#include "recording/stream/deep_pace.h"

#include <algorithm>

#include "base/clock.h"

namespace pe::recording {
namespace {

constexpr std::uint64_t kLeastPeriodNs = 1'000'000;

}  // namespace

DeepPace::DeepPace(const perf_event_attr& attr)
    : period_ns_(attr.freq != 0 && attr.sample_freq != 0 ? kNsPerSecond / attr.sample_freq
                                                         : kLeastPeriodNs) {}

void DeepPace::see(const stream::Sample& sample, std::size_t used_bytes) noexcept {
  if (!sample.has_user_copy())
    return;
  last_ns_ = std::max(last_ns_, sample.time_ns);
  // Detects deep stacks before they outgrow their copies: the missing part is available only while
  // the stack is unchanged.
  if (4 * used_bytes > 3 * sample.user_stack_limit)
    last_deep_ns_ = std::max(last_deep_ns_, sample.time_ns);
}

std::optional<std::uint64_t> DeepPace::wait_ns(std::uint64_t now_ns) const noexcept {
  constexpr std::uint64_t kPeriods = 3;
  if (last_deep_ns_ == 0 ||
      last_ns_ > last_deep_ns_ + kPeriods * std::max(period_ns_, kLeastPeriodNs))
    return std::nullopt;
  // If samples arrive regularly, a poll right after the next one is enough.
  constexpr std::uint64_t kAfterNs = 50'000;
  const std::uint64_t next_ns = last_ns_ + period_ns_ + kAfterNs;
  if (next_ns > now_ns)
    return next_ns - now_ns;
  // The sample is overdue: others have the CPU, or the thread sleeps.  The longer that takes, the
  // more rarely we poll.  When the thread continues, we are late by a quarter of its pause.
  constexpr std::uint64_t kSoonNs = 250'000, kLateNs = 250'000'000, kShare = 4;
  return std::clamp((now_ns - last_ns_) / kShare, kSoonNs, kLateNs);
}

}  // namespace pe::recording

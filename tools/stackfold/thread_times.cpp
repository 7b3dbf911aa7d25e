// SPDX-License-Identifier: MIT
#include "stackfold/thread_times.h"

#include <fmt/format.h>

#include <algorithm>

#include "folded/facts.h"

namespace pe::fold {
namespace {

constexpr double kSecondsPerNs = 1e-9;

/// The facts' keys, by stream::WaitKind.
constexpr std::array<std::string_view, stream::kWaitKinds> kWaitKeys = {
    "other-wait", "ready", "lock", "sleep", "io", "page-fault", "child"};

}  // namespace

void ThreadTimes::add(const stream::Sample& sample, std::string_view event) {
  const auto ns = static_cast<double>(sample.period);
  if (event == stream::kCpuEvent) {
    cpu_ns_ += ns;
    clock_ns_ += ns / static_cast<double>(std::max<std::uint64_t>(1, sample.weight));
  } else if (event == stream::kWaitEvent && sample.weight < wait_ns_.size()) {
    wait_ns_.at(static_cast<std::size_t>(sample.weight)) += ns;
  } else if (event == stream::kSilenceEvent) {
    (sample.pid == 0 ? whole_ns_ : silent_ns_) += ns;
  }
}

double ThreadTimes::busy_ns() const noexcept { return std::max(0.0, whole_ns_ - silent_ns_); }

double ThreadTimes::parallelism() const noexcept { return clock_ns_ > 0 ? cpu_ns_ / clock_ns_ : 1; }

void ThreadTimes::append_to(std::string& facts) const {
  const auto append = [&facts](std::string_view key, double ns) {
    if (ns > 0)
      folded::append_fact(facts, key, fmt::format("{:.3f} s", ns * kSecondsPerNs));
  };
  append("elapsed", whole_ns_);
  append("on-cpu", whole_ns_ > 0 ? busy_ns() * parallelism() : cpu_ns_);
  for (const stream::WaitKind kind :
       {stream::WaitKind::kReady, stream::WaitKind::kLock, stream::WaitKind::kIo,
        stream::WaitKind::kSleep, stream::WaitKind::kFault, stream::WaitKind::kChild,
        stream::WaitKind::kOther})
    append(kWaitKeys.at(static_cast<std::size_t>(kind)),
           wait_ns_.at(static_cast<std::size_t>(kind)));
  if (whole_ns_ > 0 && busy_ns() > 0)
    folded::append_fact(facts, "parallelism",
                        fmt::format("{:.2f} threads while any ran, {:.2f} over all time",
                                    parallelism(), busy_ns() * parallelism() / whole_ns_));
}

}  // namespace pe::fold

// SPDX-License-Identifier: MIT
#include "stackfold/thread_times.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "base/clock.h"
#include "folded/facts.h"

namespace pe::fold {
namespace {

/// A kind of wait, its fact, and its name in messages.
struct Kind {
  stream::WaitKind kind;
  std::string_view key, name;
};
/// In the order of facts and messages.
constexpr std::array<Kind, stream::kWaitKinds> kKinds = {{
    {stream::WaitKind::kReady, "ready", "ready"},
    {stream::WaitKind::kLock, "lock", "lock"},
    {stream::WaitKind::kIo, "io", "I/O"},
    {stream::WaitKind::kSleep, "sleep", "sleep"},
    {stream::WaitKind::kFault, "page-fault", "page faults"},
    {stream::WaitKind::kChild, "child", "child processes"},
    {stream::WaitKind::kOther, "other-wait", "other"},
}};

void append(std::string& facts, std::string_view key, double ns) {
  if (ns > 0)
    folded::append_fact(facts, key, seconds_text(ns));
}

}  // namespace

std::string seconds_text(double ns) {
  return fmt::format("{:.3f} s", ns / static_cast<double>(kNsPerSecond));
}

void KindTimes::add(const stream::Sample& sample, std::string_view event) {
  const auto ns = static_cast<double>(sample.period);
  if (event == stream::kCpuEvent)
    cpu_ns += ns;
  else if (event == stream::kWaitEvent && sample.weight < wait_ns.size())
    wait_ns.at(static_cast<std::size_t>(sample.weight)) += ns;
}

void KindTimes::add(const KindTimes& times) {
  cpu_ns += times.cpu_ns;
  for (std::size_t i = 0; i < wait_ns.size(); ++i)
    wait_ns.at(i) += times.wait_ns.at(i);
}

double KindTimes::waited_ns() const { return std::reduce(wait_ns.begin(), wait_ns.end()); }

std::string KindTimes::text() const {
  std::string text = cpu_ns > 0 ? "CPU " + seconds_text(cpu_ns) : "";
  for (const Kind& each : kKinds)
    if (const double ns = wait_ns.at(static_cast<std::size_t>(each.kind)); ns > 0)
      text += fmt::format("{}{} {}", text.empty() ? "" : ", ", each.name, seconds_text(ns));
  return text;
}

void KindTimes::append_to(std::string& facts) const {
  append(facts, "on-cpu", cpu_ns);
  for (const Kind& each : kKinds)
    append(facts, each.key, wait_ns.at(static_cast<std::size_t>(each.kind)));
}

void ThreadTimes::add(const stream::Sample& sample, std::string_view event) {
  const auto ns = static_cast<double>(sample.period);
  times_.add(sample, event);
  if (event == stream::kCpuEvent)
    clock_ns_ += ns / static_cast<double>(std::max<std::uint64_t>(1, sample.weight));
  else if (event == stream::kSilenceEvent)
    (sample.pid == 0 ? whole_ns_ : silent_ns_) += ns;
}

double ThreadTimes::busy_ns() const noexcept { return std::max(0.0, whole_ns_ - silent_ns_); }

double ThreadTimes::parallelism() const noexcept {
  return clock_ns_ > 0 ? times_.cpu_ns / clock_ns_ : 1;
}

void ThreadTimes::append_to(std::string& facts) const {
  append(facts, "elapsed", whole_ns_);
  KindTimes times = times_;
  if (whole_ns_ > 0)
    times.cpu_ns = busy_ns() * parallelism();
  times.append_to(facts);
  if (whole_ns_ > 0 && busy_ns() > 0)
    folded::append_fact(facts, "parallelism",
                        fmt::format("{:.2f} threads while any ran, {:.2f} over all time",
                                    parallelism(), busy_ns() * parallelism() / whole_ns_));
}

}  // namespace pe::fold

// SPDX-License-Identifier: MIT
#include "stackfold/elapsed.h"

#include <algorithm>
#include <cmath>
#include <unordered_map>
#include <vector>

#include "base/clock.h"
#include "stackfold/elapsed_steps.h"

namespace pe::fold {
namespace {

/// No machine runs more at once.
constexpr std::uint64_t kMostThreads = 1U << 20U;

/// A stack and its time, of which the counts lack a part below a microsecond.
struct Share {
  const folded::FoldedCounts* of;  ///< null: the time that was not sampled
  folded::StackId stack;
  std::uint64_t us;
  double rest;
};

void collect(const folded::FoldedCounts& from, double us_per_count, std::vector<Share>& shares) {
  for (folded::StackId stack = 0; stack < from.size(); ++stack) {
    const double us = from.counts()[stack].as_double() * us_per_count;
    shares.push_back({&from, stack, static_cast<std::uint64_t>(us), us - std::floor(us)});
  }
}

double sum_of(const folded::FoldedCounts& counts) {
  double sum = 0;
  for (const folded::Count count : counts.counts())
    sum += count.as_double();
  return sum;
}

/// Adds a part to the steps that it covers, if there are any.  One that is older than its clock is
/// damage, and has no length.
void add_part(folded::FoldedCounts& counts, std::span<const folded::FrameId> stack,
              ElapsedTime::Part part) {
  if (counts.timeline() != nullptr)
    counts.add_span(part.end_ns - (part.ns <= part.end_ns ? part.ns : 0), part.end_ns, stack);
  else
    counts.add(stack, {.whole = part.ns});
}

}  // namespace

void ElapsedTime::divide(std::uint64_t step_ns) {
  step_ns_ = step_ns;
  running_.set_timeline(folded::Timeline(step_ns, 1));
  silent_.set_timeline(folded::Timeline(step_ns, 1));
}

void ElapsedTime::note_time(std::uint64_t begin_ns, std::uint64_t end_ns) {
  running_.note_time(begin_ns, end_ns);
  silent_.note_time(begin_ns, end_ns);
}

void ElapsedTime::add_running(std::span<const folded::FrameId> stack, Part period,
                              std::uint64_t running) {
  const std::uint64_t threads = std::clamp<std::uint64_t>(running, 1, kMostThreads);
  const std::uint64_t rest = period.ns % threads;
  if (running_.timeline() != nullptr)
    return add_part(
        running_, stack,
        {.ns = period.ns <= period.end_ns ? period.ns / threads : 0, .end_ns = period.end_ns});
  running_.add(stack,
               {.whole = period.ns / threads,
                .billionths = static_cast<std::uint32_t>(rest * folded::Count::kOne / threads)});
}

void ElapsedTime::add_silence(std::span<const folded::FrameId> stack, Part part) {
  add_part(silent_, stack, part);
}

void ElapsedTime::add_steps_to(folded::FoldedCounts& counts) {
  const auto add = [&](const std::vector<TimeInStep>& times, const folded::FoldedCounts& of) {
    std::vector<folded::FrameId> frames;
    for (const TimeInStep& time : times) {
      of.copy_frames(time.stack, frames);
      counts.add_at(silent_.timeline()->start_of(time.step), frames,
                    counts.timeline()->count_of(time.ns));
    }
  };
  const double silent = sum_of(silent_);
  const std::uint64_t silent_ns =
      silent < static_cast<double>(whole_.ns) ? static_cast<std::uint64_t>(silent) : whole_.ns;
  const std::uint64_t left_ns = whole_.ns - silent_ns;
  const folded::FrameId unsampled[] = {unsampled_};
  std::unordered_map<std::int32_t, std::uint64_t> busy_ns;  // by step
  if (sum_of(running_) > 0) {
    const auto times = scaled_steps(running_, left_ns);
    for (const TimeInStep& time : times)
      busy_ns[time.step] += time.ns;
    add(times, running_);
  } else if (left_ns > 0) {
    counts.add_at(whole_.end_ns, unsampled, counts.timeline()->count_of(left_ns));
  }
  const auto room_of = [&](std::int32_t step) {
    const std::uint64_t end_ns =
        std::min(silent_.timeline()->start_of(step) + step_ns_, whole_.end_ns);
    const std::uint64_t ns = end_ns - std::min(end_ns, silent_.timeline()->start_of(step));
    const auto busy = busy_ns.find(step);
    return ns - std::min(ns, busy == busy_ns.end() ? 0 : busy->second);
  };
  add(spread_back(scaled_steps(silent_, silent_ns), silent_.timeline()->first(), room_of), silent_);
}

void ElapsedTime::add_to(folded::FoldedCounts& counts) {
  if (running_.timeline() != nullptr)
    return add_steps_to(counts);
  const auto whole_us = whole_.ns / kNsPerUs + (whole_.ns % kNsPerUs >= kNsPerUs / 2 ? 1 : 0);
  const double whole = static_cast<double>(whole_us);
  constexpr double kUsPerNs = 1.0 / static_cast<double>(kNsPerUs);
  const double silent = sum_of(silent_) * kUsPerNs, running = sum_of(running_);
  // Rounding and times that two CPUs noted at once may exceed the recording a little.
  const double silent_scale = silent > whole ? whole / silent : 1;
  const double left = whole - silent * silent_scale;
  std::vector<Share> shares;
  collect(silent_, kUsPerNs * silent_scale, shares);
  if (running > 0)
    collect(running_, left / running, shares);
  else if (left >= 1)
    shares.push_back({nullptr, 0, static_cast<std::uint64_t>(left), left - std::floor(left)});
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
  std::vector<folded::FrameId> frames;
  for (const Share& share : shares) {
    if (share.us == 0)
      continue;
    frames.assign(1, unsampled_);
    if (share.of != nullptr)
      share.of->copy_frames(share.stack, frames);
    counts.add(frames, {.whole = share.us});
  }
}

}  // namespace pe::fold

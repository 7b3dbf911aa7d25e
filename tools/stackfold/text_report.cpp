// SPDX-License-Identifier: MIT
#include "stackfold/text_report.h"

#include <algorithm>

#include "stream/records/record.h"

namespace pe::fold {
namespace {

bool is_of_threads_time(std::string_view event) {
  return event == stream::kWaitEvent || event == stream::kCpuEvent;
}

}  // namespace

bool SampleChoice::takes_event(const Options& options, std::string_view event) {
  if (folded_event.empty())
    folded_event = event;
  const bool is_folded = would_take(options, event);
  // Silences are parts of waits, and what elapsed time leaves out is in them.
  const bool is_part = event == stream::kSilenceEvent || options.weight == Weight::kElapsed;
  other_events += is_folded || is_part ? 0 : 1;
  return is_folded;
}

bool SampleChoice::would_take(const Options& options, std::string_view event) const {
  if (options.weight == Weight::kElapsed)
    return event == stream::kCpuEvent || event == stream::kSilenceEvent;
  return options.all_events || folded_event == event ||
         (!options.event && is_of_threads_time(folded_event) && is_of_threads_time(event));
}

bool SampleChoice::holds(const Options& options, std::uint64_t time_us) {
  if (!options.time)
    return true;
  if (!bounds) {
    bounds =
        options.time->in({.first_us = time_us, .last_us = options.end_us, .clock = times.clock});
  }
  return bounds->holds(time_us);
}

bool SampleChoice::takes_time(const Options& options, std::optional<std::uint64_t> time_us,
                              std::optional<std::uint64_t> begin_us) {
  if (!options.time && !options.every_ns)
    return true;
  times.last_us = std::max(times.last_us, time_us.value_or(0));
  const bool is_inside =
      time_us && (holds(options, *time_us) || (begin_us && bounds->overlaps(*begin_us, *time_us)));
  if (!time_us)
    ++without_time;
  else if (!is_inside)
    ++outside_time;
  return is_inside;
}

}  // namespace pe::fold

// SPDX-License-Identifier: MIT
#include "stackfold/text_report.h"

namespace pe::fold {

bool SampleChoice::takes_event(const Options& options, std::string_view event) {
  if (options.all_events)
    return true;
  if (folded_event.empty())
    folded_event = event;
  const bool is_folded = folded_event == event;
  other_events += is_folded ? 0 : 1;
  return is_folded;
}

bool SampleChoice::takes_time(const Options& options, std::optional<std::uint64_t> time_us) {
  if (!options.time && !options.every_ns)
    return true;
  const bool is_inside = time_us && (!options.time || options.time->holds(*time_us));
  if (!time_us)
    ++without_time;
  else if (!is_inside)
    ++outside_time;
  return is_inside;
}

}  // namespace pe::fold

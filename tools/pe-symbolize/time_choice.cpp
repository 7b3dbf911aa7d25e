// SPDX-License-Identifier: MIT
#include "pe-symbolize/time_choice.h"

#include "base/clock.h"
#include "base/error.h"
#include "stream/segments.h"

namespace pe::symbolize {

TimeChoice::TimeChoice(const std::optional<stream::TimeRange>& range, Input& input)
    : range_(range) {
  if (!range_)
    return;
  if (!input.segments().empty()) {
    times_ = stream::choose_times(input, *range_);
    bounds_ = range_->in(times_);
  } else if (range_->needs_end()) {
    Input twin = input.twin();
    times_.last_us = stream::last_sample_us(twin);
  }
}

bool TimeChoice::holds(const stream::Session& session, const stream::Record& record) {
  if (!range_)
    return true;
  if (const auto feature = stream::parse_feature(record))
    if (const auto clock = stream::parse_clock_data(*feature))
      times_.clock = clock;
  if (!session.sample())
    return true;
  const std::uint64_t time_us = session.sample()->time_ns / kNsPerUs;
  if (time_us == 0)
    throw Error("--time: the samples of this recording have no times");
  if (!bounds_) {
    times_.first_us = time_us;
    bounds_ = range_->in(times_);
  }
  const stream::Sample& sample = *session.sample();
  if (bounds_->holds(time_us))
    return true;
  // Of the time in which nothing ran, a part may be in the range (stackfold --weight elapsed).
  return session.event() != nullptr && session.event()->name == stream::kSilenceEvent &&
         sample.pid != 0 && sample.period <= sample.time_ns &&
         bounds_->overlaps((sample.time_ns - sample.period) / kNsPerUs, time_us);
}

}  // namespace pe::symbolize

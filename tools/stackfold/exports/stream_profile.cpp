// SPDX-License-Identifier: MIT
#include "stackfold/exports/stream_profile.h"

#include <algorithm>

#include "base/clock.h"
#include "stackfold/exports/places.h"
#include "stream/records/event.h"

namespace pe::fold::exports {
namespace {

using Stacks = StreamStacks<Places>;

std::string unit_of(const stream::Event& event) {
  if (event.unit == "bytes" || event.unit == "allocations")
    return event.unit == "bytes" ? "bytes" : "count";
  return event.unit == "ns" || stream::is_clock(event.attr) ? "nanoseconds" : "count";
}

Event describe(const stream::Event& event) {
  std::uint64_t period = 0;
  if (!is_weighed_by_period(event)) {
    if (event.attr.freq == 0)
      period = event.attr.sample_period;
    else if (stream::is_clock(event.attr) && event.attr.sample_freq > 0)
      period = kNsPerSecond / event.attr.sample_freq;
  }
  return {.name = event.name,
          .unit = unit_of(event),
          .by_period = is_weighed_by_period(event),
          .period = period};
}

class StreamProfile {
 public:
  StreamProfile(Input& input, const Options& options, bool with_times, Profile& profile)
      : profile_(profile),
        places_(profile),
        stacks_(input, options, places_),
        with_times_(with_times) {}

  StreamReport read() {
    return stacks_.read([this](const Stacks::Taken& taken) { take(taken); });
  }

 private:
  void take(const Stacks::Taken& taken) {
    const stream::Sample& sample = taken.sample;
    const Event event = describe(taken.event);
    const Index thread = places_.thread(sample.pid, sample.tid, stacks_.session().processes());
    const Index stack = stack_of(taken);
    const Index number = profile_.event(event);
    profile_.add(Sum{
        .stack = stack, .thread = thread, .event = number, .samples = 1, .period = sample.period});
    if (with_times_)
      profile_.add(TimedSample{.time_ns = sample.time_ns,
                               .period = sample.period,
                               .stack = stack,
                               .thread = thread,
                               .event = number});
    if (sample.time_ns == 0)
      return;
    if (profile_.first_time_ns == 0)
      profile_.first_time_ns = sample.time_ns;
    profile_.first_time_ns = std::min(profile_.first_time_ns, sample.time_ns);
    profile_.last_time_ns = std::max(profile_.last_time_ns, sample.time_ns);
  }

  Index stack_of(const Stacks::Taken& taken) {
    Index stack = kNoIndex;
    if (taken.root_first.empty())
      taken.root_first.push_back(places_.unknown());
    for (const Index place : taken.root_first)
      stack = profile_.stack(stack, place);
    // As in chain graphs, the waker's stack follows "--" upside down.
    if (!taken.waker.empty())
      stack = profile_.stack(stack, places_.word("--"));
    for (const Index place : taken.waker)
      stack = with_upside_down(stack, place);
    return stack;
  }

  /// Appends a place to an upside-down stack.  A place lists inlined functions from callee to
  /// caller, the order of this stack, so each function becomes a place of its own.
  Index with_upside_down(Index stack, Index number) {
    const Place place = profile_.places()[number];
    if (place.line_count < 2)
      return profile_.stack(stack, number);
    for (Index n = 0; n < place.line_count; ++n) {
      const Line line = profile_.lines()[place.first_line + n];
      stack = profile_.stack(stack, profile_.place(place, {line}));
    }
    return stack;
  }

  Profile& profile_;
  Places places_;
  Stacks stacks_;
  bool with_times_;
};

}  // namespace

StreamReport add_stream(Input& input, const Options& options, bool with_times, Profile& profile) {
  return StreamProfile(input, options, with_times, profile).read();
}

}  // namespace pe::fold::exports

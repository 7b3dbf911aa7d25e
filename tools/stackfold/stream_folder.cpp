// SPDX-License-Identifier: MIT
#include "stackfold/stream_folder.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/clock.h"
#include "base/error.h"
#include "base/quote.h"
#include "stackfold/frame_text.h"

namespace pe::fold {

void refuse_weight(const stream::Event& event, const std::string& field) {
  std::vector<std::string_view> numbers;
  for (const stream::TracepointField& known : event.fields)
    if (known.is_number() && !known.name.starts_with("common_"))
      numbers.push_back(known.name);
  throw Error(fmt::format("--weight: {} has no field {}; {}", event.name, in_quotes(field),
                          event.fields.empty()
                              ? "only perf record's samples of tracepoints have fields"
                              : fmt::format("its fields are {}", fmt::join(numbers, ", "))));
}

StreamFolder::StreamFolder(Input& input, const Options& options, folded::FoldedCounts& counts)
    : options_(options),
      counts_(counts),
      in_ns_(counts.frames()),
      locations_(counts.frames(), options),
      stacks_(input, options, locations_) {
  if (options.chooses_calls)
    slow_calls_.emplace(counts.frames(), options, input.name(),
                        [this](const StackCount& counted) { count(counted); });
}

StreamReport StreamFolder::fold() {
  StreamReport report = stacks_.read([this](const Stacks::Taken& taken) { take(taken); },
                                     [this](const stream::Record& record) { observe(record); });
  if (slow_calls_) {
    report.calls = slow_calls_->finish();
    report.folded_samples = report.calls->samples;
  }
  counts_.add_divided(in_ns_, kNsPerUs);
  report.unit = unit_;
  report.facts = facts_.text(report, stacks_.session());
  return report;
}

void StreamFolder::take(const Stacks::Taken& taken) {
  auto& stack = stack_;
  stack.clear();
  if (options_.all_events)
    stack.push_back(locations_.word(clean_name(taken.event.name)));
  const folded::FrameId thread =
      locations_.root(taken.sample.pid, taken.sample.tid, stacks_.session().processes());
  const std::size_t begin = stack.size();
  stack.push_back(thread);
  stack.insert(stack.end(), taken.root_first.begin(), taken.root_first.end());
  // As in chain graphs, the waker's stack follows "--" upside down, so that both leaves meet at
  // "--".
  if (!taken.waker.empty()) {
    stack.push_back(locations_.word("--"));
    stack.insert(stack.end(), taken.waker.begin(), taken.waker.end());
    if (taken.blames_waker)  // all of it the other way round: the waker's stack comes first
      std::reverse(stack.begin() + static_cast<std::ptrdiff_t>(begin), stack.end());
  }
  add(taken);
}

/// Adds the sample's stack, root first.
void StreamFolder::add(const Stacks::Taken& taken) {
  // Sums of time are in nanoseconds and printed in microseconds, as in offcputime.
  const bool is_time =
      options_.weight == Weight::kByUnit && std::string_view(taken.event.unit) == "ns";
  const std::uint64_t weight = weight_of(taken);
  if (unit_.empty())
    unit_ = is_time ? "us" : is_weighed_by_period(taken.event) ? taken.event.unit : "samples";
  const StackCount counted{.stack = stack_,
                           .is_time = is_time,
                           .weight = weight,
                           .begin_ns = begin_of(taken.sample, taken.event),
                           .end_ns = taken.sample.time_ns};
  if (slow_calls_)
    slow_calls_->hold(taken.sample.tid, counted);
  else
    count(counted);
}

void StreamFolder::count(const StackCount& counted) {
  folded::Timeline* const timeline = counts_.timeline();
  if (timeline == nullptr)
    (counted.is_time ? in_ns_ : counts_).add(counted.stack, {.whole = counted.weight});
  else if (counted.begin_ns < counted.end_ns && options_.weight != Weight::kSamples)
    counts_.add_span(counted.begin_ns, counted.end_ns, counted.stack);
  else
    counts_.add_at(counted.end_ns, counted.stack,
                   counted.is_time ? timeline->count_of(counted.weight)
                                   : folded::Count{.whole = counted.weight});
}

/// Notes facts and, with a timeline, when samples were taken and lost.
void StreamFolder::observe(const stream::Record& record) {
  const stream::Session& session = stacks_.session();
  if (slow_calls_)
    slow_calls_->follow(record, session);
  facts_.observe(record, session);
  if (counts_.timeline() == nullptr)
    return;
  if (const auto& sample = session.sample(); sample && sample->time_ns != 0)
    counts_.note_time(begin_of(*sample, *session.event()), sample->time_ns);
  // In other units, a number of samples means nothing.
  const auto& loss = session.loss();
  if (!loss || is_weighed_by_period(*loss->event) || options_.weight == Weight::kPeriod ||
      !stacks_.folds(*loss->event) ||
      (options_.time && !options_.time->holds(loss->time_ns / kNsPerUs)))
    return;
  counts_.note_time(loss->time_ns, loss->time_ns);
  const FrameId lost[] = {locations_.word("[lost samples]")};
  counts_.add_at(loss->time_ns, lost, {.whole = loss->samples});
}

std::uint64_t StreamFolder::weight_of(const Stacks::Taken& taken) const {
  const bool by_period = options_.weight == Weight::kPeriod ||
                         (options_.weight == Weight::kByUnit && is_weighed_by_period(taken.event));
  return by_period ? taken.sample.period : 1;
}

}  // namespace pe::fold

// SPDX-License-Identifier: MIT
#include "stackfold/slow_calls.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "base/clock.h"
#include "base/error.h"
#include "base/text.h"
#include "stackfold/frame_text.h"

namespace pe::fold {
namespace {

/// Does the user's text mean this function of the stream?  The path may be left out.
bool is_meant(std::string_view wanted, std::string_view function) {
  return wanted == function || wanted == stream::name_without_path(function);
}

}  // namespace

std::string duration_class(std::uint64_t ns) {
  if (ns < kNsPerUs)
    return "0-1 us";
  constexpr std::uint64_t kSteps[] = {1, 2, 5};
  constexpr std::uint64_t kBase = 10;
  std::uint64_t power = kNsPerUs;
  while (ns / kBase >= power)
    power *= kBase;
  // Now power <= ns < 10 power.
  std::size_t step = 2;
  while (ns / kSteps[step] < power)
    --step;
  const std::uint64_t unit = power >= kNsPerSecond ? kNsPerSecond
                             : power >= kNsPerMs   ? kNsPerMs
                                                   : kNsPerUs;
  const std::uint64_t ones = power / unit;
  const std::uint64_t next = step < 2 ? kSteps[step + 1] : kBase;
  return fmt::format("{}-{} {}", kSteps[step] * ones, next * ones,
                     unit == kNsPerSecond ? "s"
                     : unit == kNsPerMs   ? "ms"
                                          : "us");
}

std::string describe(const SlowCallReport& report, std::uint64_t longer_ns) {
  const stream::SpanCounts& calls = report.calls;
  std::string text =
      fmt::format("{}: {}", clean_name(report.function),
                  longer_ns > 0 ? fmt::format("{} of {} took longer than {}", report.slow_calls,
                                              plural(calls.calls, "call"), duration_text(longer_ns))
                                : plural(calls.calls, "call"));
  if (report.slow_calls == 0 && report.longest_ns > 0)
    text +=
        fmt::format(" (the longest took {})", seconds_text(static_cast<double>(report.longest_ns)));
  if (const std::string times = report.times.text(); !times.empty())
    text += fmt::format(" ({}: {})", seconds_text(report.slow_ns), times);
  text += stream::describe(calls);
  if (report.malformed > 0)
    text += ", " + plural(report.malformed, "malformed mark");
  std::string left_out;
  const auto leave_out = [&left_out](std::uint64_t samples, std::string_view where) {
    if (samples > 0)
      left_out += (left_out.empty() ? "; left out: " : ", ") + plural(samples, "sample") +
                  std::string(where);
  };
  leave_out(report.in_fast, " of shorter calls");
  leave_out(report.in_left, " since the start of calls whose end is unknown");
  leave_out(report.outside, " outside calls");
  return text + left_out;
}

SlowCalls::SlowCalls(folded::FrameTable& frames, const Options& options, const std::string& input,
                     Keep keep)
    : frames_(frames),
      input_(input),
      wanted_(options.span),
      longer_ns_(options.longer_ns),
      with_times_(options.every_ns.has_value()),
      takes_all_(!options.event && !options.time),
      keep_(std::move(keep)),
      spans_([this](const stream::Span& span, stream::SpanEnd how) { end(span, how); }),
      stacks_(frames) {}

void SlowCalls::follow(const stream::Record& record, const stream::Session& session) {
  if (record.is_sample() && !function_)
    choose(session);
  (void)spans_.follow(record, session);
}

/// Chooses the function.  All events of a stream precede its samples.
void SlowCalls::choose(const stream::Session& session) {
  std::vector<std::string> functions;
  const auto& events = session.events().all();
  const auto has = [&events](std::string_view name) {
    return std::ranges::find(events, name, &stream::Event::name) != events.end();
  };
  has_all_time_ = takes_all_ && has(stream::kCpuEvent) && has(stream::kWaitEvent);
  for (const stream::Event& event : events)
    if (const auto what = stream::span_event(event.name); what && !what->is_return)
      functions.emplace_back(what->function);
  if (functions.empty())
    throw Error(input_ + ": the recording has no calls (record them: pe-record --span FUNC)");
  if (!wanted_ && functions.size() > 1)
    throw Error(fmt::format("{}: --longer: choose a function with --span: {}", input_,
                            fmt::join(functions, ", ")));
  const auto meant = wanted_ ? std::ranges::find_if(functions,
                                                    [this](const std::string& function) {
                                                      return is_meant(*wanted_, function);
                                                    })
                             : functions.begin();
  if (meant == functions.end())
    throw Error(fmt::format("{}: no calls to '{}' in the recording (it has {})", input_, *wanted_,
                            fmt::join(functions, ", ")));
  report_.function = *meant;
  function_ = spans_.index_of(*meant);
}

void SlowCalls::hold(const stream::Sample& sample, std::string_view event,
                     const StackCount& counted) {
  // A sample of CPU time stands for the time since the one before, also if that was before the
  // call: the time after the last sample in a call compensates for that.
  const std::uint64_t begin_ns = event == stream::kCpuEvent ? counted.end_ns : counted.begin_ns;
  std::uint64_t number = 0;
  spans_.for_each_open(sample.tid, [&](const stream::Span& span) {
    // A wait that started before the entry is damage.
    if (span.function == function_ && begin_ns >= span.begin_ns)
      number = span.number;
  });
  if (number == 0) {
    ++report_.outside;
    return;
  }
  Held& held = held_[number];
  ++held.samples;
  held.times.add(sample, event);
  const folded::StackId stack = stacks_.add(counted.stack, {});
  if (with_times_) {
    held.timed.push_back(
        {stack, counted.is_time, counted.weight, counted.begin_ns, counted.end_ns});
    return;
  }
  std::uint64_t& sum = held.sums[std::uint64_t{stack} << 1U | (counted.is_time ? 1U : 0U)];
  if (__builtin_add_overflow(sum, counted.weight, &sum))
    sum = ~std::uint64_t{0};
}

void SlowCalls::end(const stream::Span& span, stream::SpanEnd how) {
  if (span.function != function_)
    return;
  const bool is_slow = how != stream::SpanEnd::kLeft &&
                       (longer_ns_ == 0 || span.end_ns - span.begin_ns > longer_ns_);
  if (has_known_length(how))
    report_.longest_ns = std::max(report_.longest_ns, span.end_ns - span.begin_ns);
  const auto held = held_.extract(span.number);
  if (is_slow) {
    ++report_.slow_calls;
    if (has_all_time_ && has_known_length(how))
      add_times(span, held.empty() ? KindTimes() : held.mapped().times);
  }
  if (held.empty())
    return;
  const std::uint64_t samples = held.mapped().samples;
  if (is_slow)
    keep(span, held.mapped());
  else
    (has_known_length(how) ? report_.in_fast : report_.in_left) += samples;
}

/// A call is of one thread: while that did not wait, it ran.  Samples are not needed for that.
void SlowCalls::add_times(const stream::Span& span, KindTimes times) {
  const auto ns = static_cast<double>(span.end_ns - span.begin_ns);
  report_.slow_ns += ns;
  times.cpu_ns = std::max(0.0, ns - times.waited_ns());
  report_.times.add(times);
}

void SlowCalls::keep(const stream::Span& span, const Held& held) {
  report_.samples += held.samples;
  const folded::FrameId root =
      frames_.intern(fmt::format("{} [{}]", clean_name(stream::name_without_path(report_.function)),
                                 duration_class(span.end_ns - span.begin_ns)));
  const auto with_root = [&](folded::StackId id) {
    stacks_.copy_frames(id, stack_);
    stack_.insert(stack_.begin(), root);
    return std::span<const folded::FrameId>(stack_);
  };
  for (const auto& [key, sum] : held.sums)
    keep_({.stack = with_root(static_cast<folded::StackId>(key >> 1U)),
           .is_time = (key & 1U) != 0,
           .weight = sum});
  for (const Timed& timed : held.timed)
    keep_({with_root(timed.stack), timed.is_time, timed.weight, timed.begin_ns, timed.end_ns});
}

SlowCallReport SlowCalls::finish() {
  spans_.finish();
  report_.malformed = spans_.malformed();
  if (function_)
    report_.calls = spans_.counts(*function_);
  return report_;
}

}  // namespace pe::fold

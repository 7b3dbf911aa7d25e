// SPDX-License-Identifier: MIT
#include "pe-record/counter_source.h"

#include <fmt/format.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/plural.h"
#include "pe-record/closing_line.h"
#include "record/own_rights.h"
#include "record/stream/whole_stream.h"

namespace pe::recorder {
namespace {

using record::BpfEngine;

/// The engine bpf if the user asked for it.
std::unique_ptr<BpfEngine> load_bpf(const Options& options) {
  if (options.request.engine != record::Engine::kBpf)
    return nullptr;
  const std::vector<int>& cpus = options.target.cpus;
  try {
    return std::make_unique<BpfEngine>(options.request, options.target,
                                       cpus.empty() ? record::online_cpus().size() : cpus.size());
  } catch (const Error& error) {
    throw Error(fmt::format("--engine bpf: {}", error.what()));
  }
}

}  // namespace

CounterSource::CounterSource(const Options& options, record::Session& session)
    : options_(options), session_(session), engine_(load_bpf(options)) {
  session.start_child();
  session.watch_targets();
  counters_.emplace(options.request, session.target(), engine_.get());
  writer_.emplace(session.open_output());
  for (const std::string& note : counters_->notes())
    session.note(note);
  const perf_event_attr& attr = counters_->events().front().attr;
  stream_.emplace(*writer_, attr, options.request, engine_ ? &engine_->tables() : nullptr);
  drain_.emplace(*stream_, attr, engine_.get());
  record::keep_rights_to_record(engine_ != nullptr);
}

void CounterSource::start() {
  write_head(*stream_, counters_->events());
  // From here on the kernel keeps everything that happens; what was before is read now.
  const std::uint64_t read_ns = monotonic_ns();
  if (!engine_)
    start_clock(read_ns);
  counters_->start();
  unreadable_ = write_running(*stream_, counters_->layout(), session_.target());
  if (engine_) {  // it samples from now on: the tables of large programs take a second
    engine_->begin(*stream_, session_.target(), read_ns);
    start_clock(monotonic_ns());
  }
}

void CounterSource::start_clock(std::uint64_t now_ns) {
  if (counters_->sampled_clock())
    time_.emplace(session_.target());
  session_.start_clock(now_ns);
}

std::vector<int> CounterSource::fds() const {
  std::vector<int> fds = counters_->ring_fds();
  if (engine_)
    fds.push_back(engine_->ring_fd());
  return fds;
}

std::optional<std::uint64_t> CounterSource::pass() {
  drain_->pass(counters_->rings());
  if (time_)
    time_->look();
  return drain_->urgency_ns();
}

std::string CounterSource::progress() const { return plural(drain_->passed().samples, "sample"); }

void CounterSource::stop() {
  counters_->stop();
  if (time_)
    time_->look_last();
}

std::string CounterSource::finish(record::Ended /*ended*/) {
  drain_->finish(counters_->rings());
  record::Passed passed = drain_->passed();
  passed.lost.add_counted(write_tail(*stream_, *counters_, engine_ ? engine_->lost() : 0));
  lost_ = passed.lost.count();
  const std::string unsampled = describe_unsampled(passed);
  const std::string of_engine = engine_ ? engine_->describe(*stream_) : "";
  const std::string kept = record::finish_keeping(*stream_);
  if (!unreadable_.empty())
    session_.say(record::describe_unreadable(unreadable_));
  return closing_line(passed, *stream_, session_.cost()) + unsampled + of_engine + kept;
}

std::string CounterSource::describe_unsampled(const record::Passed& passed) const {
  std::string text;
  const auto add = [&text](const std::string& what) {
    if (!what.empty())
      text += "; " + what;
  };
  if (const auto clock = counters_->sampled_clock(); clock && time_)
    add(record::describe_unsampled({.clock = *clock,
                                    .ns = (passed.samples + passed.lost.count()) * clock->period_ns,
                                    .stolen_ns = time_->stolen_ns()},
                                   time_->used_ns()));
  if (const std::uint64_t missing = counters_->not_followed(); missing > 0)
    add(plural(missing, "forked process") + " not followed");
  return text;
}

std::optional<std::string> CounterSource::why_empty() {
  if (drain_->passed().samples > 0)
    return std::nullopt;
  return record::why_empty(session_.activity(),
                           {.request = options_.request,
                            .period_ns = record::period_ns_of(counters_->events().front().attr),
                            .program = session_.child() != nullptr ? options_.command.front() : "",
                            .lost = lost_});
}

}  // namespace pe::recorder

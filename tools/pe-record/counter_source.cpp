// SPDX-License-Identifier: MIT
#include "pe-record/counter_source.h"

#include <fmt/format.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/plural.h"
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
    : RingSource(options.request, session) {
  bpf_ = load_bpf(options);
  session.start_child();
  session.watch_targets();
  counters_.emplace(options.request, session.target(), bpf_.get());
  open_stream(counters_->events().front().attr, counters_->notes());
  if (session.child() != nullptr)
    program_ = options.command.front();
  record::keep_rights_to_record(bpf_ != nullptr);
}

void CounterSource::start() {
  write_head(*stream_, counters_->events(), bpf_ ? "bpf" : "perf");
  // From here on the kernel keeps everything that happens; what was before is read now.
  const std::uint64_t read_ns = monotonic_ns();
  if (!bpf_)
    start_clock(read_ns);
  counters_->start();
  if (bpf_)
    bpf_->read_scripts(*stream_);
  unreadable_ = write_running(*stream_, counters_->layout(), session_.target());
  if (bpf_) {  // it samples from now on: the tables of large programs take a second
    bpf_->begin(*stream_, session_.target(), read_ns);
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
  if (bpf_)
    fds.push_back(bpf_->ring_fd());
  return fds;
}

std::optional<std::uint64_t> CounterSource::pass() {
  drain_->pass(counters_->rings());
  if (time_)
    time_->look();
  return drain_->urgency_ns();
}

void CounterSource::stop() {
  counters_->stop();
  if (time_)
    time_->look_last();
}

record::Closing CounterSource::finish(record::Ended /*ended*/) {
  drain_->finish(counters_->rings());
  record::Passed passed = drain_->passed();
  passed.lost.add_counted(write_tail(*stream_, *counters_, bpf_ ? bpf_->lost() : 0));
  record::Closing closing = close_stream(passed);
  add_unsampled(closing, passed);
  if (bpf_)
    bpf_->describe(*stream_, closing);
  return closing;
}

void CounterSource::add_unsampled(record::Closing& closing, const record::Passed& passed) const {
  if (const auto clock = counters_->sampled_clock(); clock && time_)
    if (const std::string unsampled = record::describe_unsampled(
            {.clock = *clock,
             .ns = (passed.samples + passed.lost.count()) * clock->period_ns,
             .stolen_ns = time_->stolen_ns()},
            time_->used_ns());
        !unsampled.empty())
      closing.doubts.push_back(unsampled);
  if (const std::uint64_t missing = counters_->not_followed(); missing > 0)
    closing.doubt(plural(missing, "forked process") + " not followed",
                  "record fewer processes, or use --all");
}

}  // namespace pe::recorder

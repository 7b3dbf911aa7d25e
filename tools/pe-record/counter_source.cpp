// SPDX-License-Identifier: MIT
#include "pe-record/counter_source.h"

#include <fmt/format.h>

#include <map>
#include <utility>

#include "base/clock.h"
#include "base/error.h"
#include "base/text.h"
#include "recording/counters/attributes.h"
#include "recording/own_process.h"
#include "recording/probes/marks.h"
#include "recording/refused.h"
#include "recording/request.h"
#include "recording/stream/whole_stream.h"

namespace pe::recorder {
namespace {

using recording::BpfEngine;

/// The engine bpf if the user asked for it.
std::unique_ptr<BpfEngine> load_bpf(const Options& options, Budget& budget) {
  if (options.request.engine != recording::Engine::kBpf)
    return nullptr;
  const std::vector<int>& cpus = options.target.cpus;
  try {
    return std::make_unique<BpfEngine>(options.request, options.target,
                                       cpus.empty() ? recording::online_cpus().size() : cpus.size(),
                                       budget);
  } catch (const Error& error) {
    throw recording::Refused(fmt::format("--engine bpf: {}", error.what()),
                             recording::refusal_of(error));
  }
}

}  // namespace

CounterSource::CounterSource(const Options& options, recording::Session& session)
    : RingSource(options, session) {
  bpf_ = load_bpf(options, session.budget());
  session.start_child();
  session.watch_targets();
  counters_.emplace(options.request, session.target(), bpf_ ? &bpf_->walker() : nullptr);
  if (!bpf_)
    fix_of_full_rings_ = counters_->fix_of_full_rings();
  const recording::OpenedEvent& event = counters_->events().front();
  recording::StreamParts parts{.weigher = weigher(event.attr)};
  parts.drops_data = parts.weigher && request_.with_raw_data && !request_.keep_stacks;
  if (!options.request.spans.empty()) {
    const auto marks = recording::mark_ids(counters_->events());
    parts.marks.insert(marks.begin(), marks.end());
  }
  open_stream(event, counters_->notes(), std::move(parts));
  if (!options.request.spans.empty())
    drain_->report_losses_early();
  if (session.child() != nullptr)
    program_ = options.command.front();
  recording::keep_rights_to_record(bpf_ != nullptr);
}

void CounterSource::start() {
  write_head(*stream_, counters_->events(), bpf_ ? "bpf" : "perf");
  // From here on the kernel keeps everything that happens; what was before is read now.
  const std::uint64_t read_ns = monotonic_ns();
  if (!bpf_)
    start_clock(read_ns);
  counters_->start();
  expect_command();
  unreadable_ = write_running(*stream_, counters_->layout(), session_.target());
  if (bpf_) {  // it samples from now on: the tables of large programs take a second
    bpf_->begin(*stream_, session_.target(), read_ns);
    start_clock(monotonic_ns());
  }
}

void CounterSource::start_clock(std::uint64_t now_ns) {
  if (counters_->sampled_clock())
    time_.emplace(session_.target());
  started_ns_ = hits_since_ns_ = now_ns;
  session_.start_clock(now_ns);
}

std::vector<int> CounterSource::fds() const {
  std::vector<int> fds = counters_->ring_fds();
  if (bpf_)
    fds.push_back(bpf_->ring_fd());
  return fds;
}

/// Returns the weights of samples, which find their counter by its id; nullopt if none has one.
std::optional<recording::Weigher> CounterSource::weigher(const perf_event_attr& attr) const {
  std::map<std::uint64_t, recording::Weight> weights;
  for (const recording::OpenedEvent& event : counters_->events())
    for (const std::uint64_t id : event.ids)
      if (event.weight)
        weights.emplace(id, event.weight->weight);
  if (weights.empty())
    return std::nullopt;
  recording::Weigher weigher(std::move(weights), attr);
  if (bpf_)
    weigher.trust_periods();
  return weigher;
}

/// Ends the recording if the target passes its probes too often.
void CounterSource::check_hits() {
  constexpr std::uint64_t kLeastNs = 250'000'000;
  const std::uint64_t now_ns = monotonic_ns();
  if (!request_.max_hits || is_over_ || now_ns - hits_since_ns_ < kLeastNs)
    return;
  const recording::Passed& passed = drain_->passed();
  const bool are_samples_hits = request_.spans.empty() || !request_.probes.empty();
  std::uint64_t hits =
      passed.marks + (are_samples_hits ? passed.samples : 0) + (bpf_ ? bpf_->lost() : 0);
  for (std::size_t event = 0; event < counters_->events().size(); ++event)
    hits += counters_->lost(event).value_or(0);
  const double seconds = static_cast<double>(now_ns - hits_since_ns_) / kNsPerSecond;
  const double rate = static_cast<double>(hits - hits_before_) / seconds;
  hits_since_ns_ = now_ns;
  hits_before_ = hits;
  if (rate <= static_cast<double>(*request_.max_hits))
    return;
  is_over_ = true;
  session_.say(fmt::format("stopped: {:.0f} hits per second exceed --max-hits {}", rate,
                           *request_.max_hits));
  session_.ending().end_now();
}

std::optional<std::uint64_t> CounterSource::pass() {
  drain_->pass(counters_->rings());
  check_hits();
  if (time_)
    time_->look();
  return drain_->urgency_ns();
}

void CounterSource::stop() {
  counters_->stop();
  stopped_ns_ = monotonic_ns();
  if (time_)
    time_->check_last();
}

Closing CounterSource::finish(recording::Ended /*ended*/) {
  drain_->finish(counters_->rings());
  recording::Passed passed = drain_->passed();
  passed.lost.add_counted(write_tail(*stream_, *counters_, bpf_ ? bpf_->lost() : 0));
  Closing closing = close_stream(passed);
  add_unsampled(closing, passed);
  counters_->describe_cpus(closing);
  if (passed.marks > 0)
    closing.detail(plural(passed.marks, "mark") + " of entries and exits");
  add_weights(closing);
  if (bpf_)
    bpf_->describe(*stream_, closing);
  return closing;
}

void CounterSource::add_weights(Closing& closing) const {
  const recording::Weigher* const weigher = stream_->weigher();
  if (weigher == nullptr)
    return;
  if (weigher->negative() > 0)
    closing.doubts.push_back(fmt::format("{} with a negative value, such as an error: counted as 0",
                                         plural(weigher->negative(), "sample")));
  if (weigher->unknown() > 0)
    closing.doubts.push_back(fmt::format("{} whose value could not be read: counted as 0",
                                         plural(weigher->unknown(), "sample")));
}

void CounterSource::add_unsampled(Closing& closing, const recording::Passed& passed) const {
  if (const auto clock = counters_->sampled_clock(); clock && time_)
    if (const std::string unsampled = recording::describe_unsampled(
            {.clock = *clock,
             .ns = (passed.samples + passed.lost.count()) * clock->period_ns,
             .stolen_ns = time_->stolen_ns(),
             .cpus_ns = (stopped_ns_ - started_ns_) * recording::online_cpus().size(),
             .walked_ns = bpf_ ? bpf_->walked_ns() : 0},
            time_->used_ns());
        !unsampled.empty())
      closing.doubts.push_back(unsampled);
  if (const std::uint64_t missing = counters_->not_followed(); missing > 0)
    closing.doubt(plural(missing, "forked process") + " not followed",
                  "record fewer processes, or use --all");
}

}  // namespace pe::recorder

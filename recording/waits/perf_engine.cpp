// SPDX-License-Identifier: MIT
#include "recording/waits/perf_engine.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <span>
#include <string_view>

#include "base/byte_reader.h"
#include "base/clock.h"
#include "base/text.h"
#include "recording/counters/tracefs.h"
#include "recording/own_process.h"
#include "recording/probes/marks.h"
#include "recording/stream/whole_stream.h"
#include "recording/waits/engine.h"
#include "stream/proc/own_rights.h"
#include "stream/user_copy.h"

namespace pe::waits {
namespace {

constexpr const char* kSwitchTracepoint = "sched:sched_switch";

}  // namespace

PerfEngine::Recording::Recording(Output& out, PerfEngine& engine)
    : writer(out),
      stream(writer, engine.layout_, engine.request_, engine.budget_,
             {.pass_on = [&engine](const stream::Record& record) { engine.take(record); },
              .marks = engine.marks()}),
      drain(stream, engine.layout_),
      waits(writer, engine.first_id()) {}

PerfEngine::PerfEngine(const Options& options, const recording::Target& target, Budget& budget,
                       bool may_use_bpf)
    : may_use_bpf_(may_use_bpf),
      request_(options.request),
      target_(target),
      budget_(budget),
      counters_(options.request, target),
      layout_(counters_.layout()),
      unwound_(layout_),
      tracker_(options.choice, [this](const Wait& wait) { recording_->waits.add(wait); }) {
  if (std::ranges::any_of(counters_.events(), &recording::OpenedEvent::is_denied))
    tracker_.expect_no_stacks();
  if (!options.choice.states.empty())
    state_field_ = recording::tracepoint_field(kSwitchTracepoint, "prev_state");
}

std::uint64_t PerfEngine::first_id() const {
  for (const auto& event : counters_.events())
    if (!event.ids.empty())
      return event.ids.front();
  return 0;
}

std::uint64_t PerfEngine::begin(Output& out) {
  recording_.emplace(out, *this);
  recording_->drain.report_losses_early();
  if (!request_.spans.empty())
    recording_->waits.keep_apart();
  unwound_ = recording_->stream.stated(layout_);
  write_head();
  counters_.start();
  const std::uint64_t began_ns = monotonic_ns();
  recording::keep_rights_to_record(false);
  return began_ns;
}

std::unordered_set<std::uint64_t> PerfEngine::marks() const {
  if (request_.spans.empty())
    return {};
  const auto ids = recording::mark_ids(counters_.events());
  return {ids.begin(), ids.end()};
}

void PerfEngine::write_running_state() {
  unreadable_ = recording::write_running(recording_->stream, counters_.layout(), target_);
}

/// Returns the ids of all records but marks.  If there is one event, no reader needs them.
std::vector<std::uint64_t> PerfEngine::ids_of_waits() const {
  std::vector<std::uint64_t> ids{first_id()};
  for (const auto& event : counters_.events())
    if (!request_.spans.empty() && !event.is_mark)
      ids.insert(ids.end(), event.ids.begin(), event.ids.end());
  return ids;
}

void PerfEngine::write_head() {
  stream::StreamWriter& writer = recording_->writer;
  writer.write_header();
  writer.write_attr(wait_attr(unwound_), ids_of_waits());
  writer.write_event_name(first_id(), stream::kWaitEvent);
  writer.write_event_unit(first_id(), "ns");
  recording::write_mark_events(writer, counters_.events());
  recording::write_origin(writer, "perf");
}

std::optional<std::uint64_t> PerfEngine::pass() {
  recording_->drain.pass(counters_.rings());
  recording_->waits.reach(recording_->drain.written_until_ns());
  return recording_->drain.urgency_ns();
}

void PerfEngine::stop() {
  counters_.stop();
  stopped_ns_ = monotonic_ns();
}

void PerfEngine::finish() {
  recording_->drain.finish(counters_.rings());
  tracker_.finish(stopped_ns_);
  silent_threads_ =
      count_silent_threads(target_, [this](std::uint32_t tid) { return tracker_.has_seen(tid); });
  recording_->waits.flush(stopped_ns_);
  for (std::size_t i = 0; i < counters_.events().size(); ++i)
    (counters_.events()[i].has_own_rings ? lost_changes_ : lost_samples_)
        .add_counted(counters_.lost(i).value_or(0));
  if (lost() > 0)
    recording_->writer.write_lost_samples(wait_attr(unwound_), first_id(), lost());
  recording_->writer.write_end();
  recording_->writer.flush();
}

/// Receives the records in the order of time.
void PerfEngine::take(const stream::Record& record) {
  if (recording_->stream.is_mark(record))
    return recording_->writer.write(record.bytes);
  recording_->waits.reach(stream::time_of(record, record.is_sample() ? unwound_ : layout_));
  switch (record.type) {
    case PERF_RECORD_SAMPLE:
      return take_sample(record);
    case PERF_RECORD_SWITCH:
    case PERF_RECORD_SWITCH_CPU_WIDE:
      if (const auto change = stream::parse_switch(record, layout_))
        tracker_.switched(*change);
      return;
    case PERF_RECORD_LOST:
      return take_loss(record);
    default:
      return take_change(record);
  }
}

void PerfEngine::take_sample(const stream::Record& record) {
  if (const auto sample = stream::parse_sample(record, unwound_))
    tracker_.sample(*sample, record.misc, state_of(*sample));
}

/// Returns the state that the tracepoint reports (linux/sched.h, TASK_*;
/// include/trace/events/sched.h).
char PerfEngine::state_of(const stream::Sample& sample) const {
  if (state_field_.size != sizeof(std::uint64_t))
    return '?';
  ByteReader reader(sample.raw);
  if (!reader.skip(state_field_.offset))
    return '?';
  constexpr std::string_view kLetters = "SDTtXZPI";
  constexpr std::uint64_t kReported = 0xff;
  const std::uint64_t state = reader.take<std::uint64_t>().value_or(0) & kReported;
  return state == 0 ? 'R' : kLetters[static_cast<std::size_t>(std::countr_zero(state))];
}

/// A lost sample costs a stack, a lost switch makes lengths doubtful.
void PerfEngine::take_loss(const stream::Record& record) {
  ByteReader reader(record.body());
  const std::uint64_t id = reader.take<std::uint64_t>().value_or(0);
  const auto& events = counters_.events();
  const bool is_of_samples = std::any_of(events.begin(), events.end(), [id](const auto& event) {
    return !event.has_own_rings &&
           std::find(event.ids.begin(), event.ids.end(), id) != event.ids.end();
  });
  const std::uint64_t time_ns = stream::time_of(record, layout_);
  (is_of_samples ? lost_samples_ : lost_changes_).add(record, time_ns);
  if (is_of_samples && !request_.spans.empty())  // calls are unknown from here on
    recording_->writer.write(record.bytes);
  if (!is_of_samples)
    tracker_.lost_switches(time_ns);
}

/// Writes every other record to the stream, after the waits before it.
void PerfEngine::take_change(const stream::Record& record) {
  const std::uint64_t time_ns = stream::time_of(record, layout_);
  if (record.type == PERF_RECORD_FORK || record.type == PERF_RECORD_EXIT) {
    if (const auto task = stream::parse_task(record))
      record.type == PERF_RECORD_FORK ? tracker_.forked(task->tid)
                                      : tracker_.ended(task->tid, time_ns);
  } else if (record.type == PERF_RECORD_COMM) {
    if (const auto comm = stream::parse_comm(record); comm && comm->is_exec)
      tracker_.began_program(comm->tid);
  }
  recording_->waits.flush(time_ns);
  recording_->writer.write(record.bytes);
}

std::uint64_t PerfEngine::lost() const { return lost_samples_.count(); }

unwind::StackCounts PerfEngine::stacks() const {
  const auto* unwinder = recording_->stream.unwinder();
  return unwinder != nullptr ? unwinder->counts() : unwind::StackCounts{};
}

std::string_view PerfEngine::fix_of_cuts() const {
  if (request_.stack_bytes < recording::kMaxStackBytes)
    return "raise --stack-size";
  return may_use_bpf_ ? "copies cannot be larger: use --engine bpf, which needs none"
                      : "copies cannot be larger";
}

std::string PerfEngine::fix_of_losses() const {
  return std::string(counters_.fix_of_full_rings()) + (may_use_bpf_ ? ", or use --engine bpf" : "");
}

void PerfEngine::describe(Closing& closing) {
  closing.fact("engine", "perf");
  if (std::ranges::any_of(counters_.events(), &recording::OpenedEvent::is_denied))
    closing.fact("stacks", "none");
  counters_.describe_cpus(closing);
  if (lost() > 0)
    closing.doubt(
        fmt::format("{} of stacks lost, because the rings were full", plural(lost(), "record")),
        fix_of_losses());
  // It is unknown how many waits that were, and of which threads.
  if (const std::uint64_t lost = lost_changes_.count(); lost > 0)
    closing.doubt(fmt::format("{} of switches and processes lost, so waits are missing",
                              plural(lost, "record")),
                  fix_of_losses());
  describe_silent_threads(silent_threads_, false, closing);
  recording_->stream.runtimes().describe(closing);
  recording::describe_spending(recording_->stream, closing);
  recording::finish_keeping(recording_->stream, closing);
}

std::string PerfEngine::problem() const {
  return recording::describe_unreadable(unreadable_, recording_->waits.processes(),
                                        stream::fix_of_unreadable_processes());
}

}  // namespace pe::waits

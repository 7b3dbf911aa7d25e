// SPDX-License-Identifier: MIT
#include "recording/waits/perf_engine.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <span>
#include <string_view>

#include "base/byte_reader.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/text.h"
#include "recording/counters/attributes.h"
#include "recording/counters/tracefs.h"
#include "recording/own_process.h"
#include "recording/probes/marks.h"
#include "recording/refused.h"
#include "recording/stream/whole_stream.h"
#include "recording/waits/engine.h"
#include "stream/proc/own_rights.h"
#include "stream/user_copy.h"

namespace pe::waits {
namespace {

bool may_read_tracepoints() {
  if (!stream::has_capability(stream::Capability::kPerfmon) &&
      !stream::has_capability(stream::Capability::kSysAdmin) &&
      recording::perf_event_paranoid() >= 0)
    return false;
  try {
    return recording::tracepoint_id(recording::kSwitchTracepoint) != 0;
  } catch (const Error&) {
    return false;  // tracefs is not mounted, or not readable
  }
}

/// Returns what the counters record for these options.
recording::Request request_of(const Options& options) {
  recording::Request request = options.request;
  if (!options.with_cpu)
    return request;
  constexpr std::uint32_t kStackBytes = 8 * 1024, kClockStackBytes = 32 * 1024;
  const bool has_tracepoints = may_read_tracepoints();
  const std::string switches = has_tracepoints ? recording::kSwitchTracepoint : "context-switches";
  request.events = {switches, "cpu-clock"};
  request.each_pass = {switches};
  request.frequency_was_given = false;  // it is not that of switches
  request.with_switches = true;
  request.with_raw_data = has_tracepoints;
  request.with_wakeups = has_tracepoints && request.spans.empty();
  if (!request.stack_bytes) {
    request.stack_bytes = kStackBytes;  // as offcpu's
    request.clock_stack_bytes = kClockStackBytes;
  }
  request.user_only = false;  // the kernel's frames show what threads wait for
  request.engine = recording::Engine::kPerf;
  return request;
}

}  // namespace

PerfEngine::Recording::Recording(Output& out, PerfEngine& engine)
    : writer(out),
      stream(writer, engine.layout_, engine.request_, engine.budget_,
             {.pass_on = [&engine](const stream::Record& record) { engine.take(record); },
              .before = [&engine](const stream::Record& record) { return engine.precede(record); },
              .marks = engine.marks()}),
      drain(stream, engine.layout_),
      waits(writer, WaitWriter(writer, engine.first_id(), 0, false, engine.with_cpu_),
            engine.with_cpu_ && engine.target_.is_command
                ? std::optional<std::uint32_t>(engine.target_.processes.front())
                : std::nullopt) {}

PerfEngine::PerfEngine(const Options& options, const recording::Target& target, Budget& budget,
                       bool may_use_bpf)
    : may_use_bpf_(may_use_bpf),
      with_cpu_(options.with_cpu),
      user_only_(options.request.user_only),
      request_(request_of(options)),
      target_(target),
      budget_(budget),
      counters_(request_, target),
      layout_(counters_.layout()),
      unwound_(layout_),
      tracker_(options.choice, [this](const Wait& wait) { hold(wait); }),
      numbers_(stream::is_in_first_pid_namespace()) {
  const bool is_denied =
      std::ranges::any_of(counters_.events(), &recording::OpenedEvent::is_denied);
  if (is_denied && with_cpu_)
    throw recording::Refused(recording::missing_right(1, "for stacks of waits"),
                             recording::kNoCounters);
  if (is_denied)
    tracker_.expect_no_stacks();
  if (request_.with_raw_data)
    state_field_ = recording::tracepoint_field(recording::kSwitchTracepoint, "prev_state");
  if (request_.with_wakeups)
    wakee_field_ = recording::tracepoint_field(recording::kWakeupTracepoint, "pid");
  if (request_.with_wakeups)
    switched_field_ = recording::tracepoint_field(recording::kSwitchTracepoint, "prev_pid");
  for (const auto& event : counters_.events()) {
    if (with_cpu_ && stream::is_clock(event.attr))
      cpu_ids_.insert(event.ids.begin(), event.ids.end());
    if (request_.with_wakeups && event.name == recording::kWakeupTracepoint) {
      wakeup_ids_.insert(event.ids.begin(), event.ids.end());
      wakeup_layout_ = event.attr;
    }
  }
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
  recording_->waits.check_by([this] { budget_.look(monotonic_ns()); });
  unwound_ = recording_->stream.stated(layout_);
  write_head();
  if (with_cpu_)
    without_kinds_ = kinds_.load();
  counters_.start();
  began_ns_ = monotonic_ns();
  running_.begin(began_ns_);
  recording::keep_rights_to_record(false);
  return began_ns_;
}

std::unordered_set<std::uint64_t> PerfEngine::marks() const {
  if (request_.spans.empty())
    return {};
  const auto ids = recording::mark_ids(counters_.events());
  return {ids.begin(), ids.end()};
}

void PerfEngine::write_running_state() {
  unreadable_ = recording::write_running(recording_->stream, counters_.layout(), target_);
  find_waiting();
}

void PerfEngine::write_head() {
  stream::StreamWriter& writer = recording_->writer;
  writer.write_header();
  writer.write_attr(attr_of_waits(), std::vector{first_id()});
  writer.write_event_name(first_id(), stream::kWaitEvent);
  writer.write_event_unit(first_id(), "ns");
  if (with_cpu_)
    write_times(writer, attr_of_waits(), has_elapsed_time());
  recording::write_mark_events(writer, counters_.events());
  recording::write_origin(writer, "perf");
}

std::optional<std::uint64_t> PerfEngine::pass() {
  recording_->drain.pass(counters_.rings());
  recording_->waits.write_until(recording_->drain.written_until_ns());
  count();
  return recording_->drain.urgency_ns();
}

void PerfEngine::stop() {
  counters_.stop();
  stopped_ns_ = monotonic_ns();
}

void PerfEngine::finish() {
  recording_->drain.finish(counters_.rings());
  finish_times();
  silent_threads_ =
      count_silent_threads(target_, [this](std::uint32_t tid) { return tracker_.has_seen(tid); });
  for (std::size_t i = 0; i < counters_.events().size(); ++i)
    (counters_.events()[i].has_own_rings ? lost_changes_ : lost_samples_)
        .add_counted(counters_.lost(i).value_or(0));
  if (lost() > 0)
    recording_->writer.write_lost_samples(attr_of_waits(), first_id(), lost());
  recording_->writer.write_end();
  recording_->writer.flush();
}

/// Receives the records in the order of time.
void PerfEngine::take(const stream::Record& record) {
  // A loss is reported at the time of the record before it (Drain::report_losses_early()).
  if (record.type != PERF_RECORD_LOST)
    now_ns_ = stream::time_of(record, record.is_sample() ? unwound_ : layout_);
  if (recording_->stream.is_mark(record))
    return recording_->waits.hold(now_ns_, record);
  switch (record.type) {
    case PERF_RECORD_SAMPLE:
      return take_sample(record);
    case PERF_RECORD_SWITCH:
    case PERF_RECORD_SWITCH_CPU_WIDE:
      if (const auto change = stream::parse_switch(record, layout_))
        take_switch(*change);
      return;
    case PERF_RECORD_LOST:
      return take_loss(record);
    default:
      return take_change(record);
  }
}

void PerfEngine::take_sample(const stream::Record& record) {
  const auto sample = stream::parse_sample(record, unwound_);
  if (!sample)
    return;
  if (facts_.is_of_cpu)
    return hold_cpu_time(*sample, record.misc);
  facts_.state = state_of(*sample);
  learn_number(*sample);
  Stack* const stack = tracker_.sample(*sample, record.misc, facts_.state);
  if (!with_cpu_ || stack == nullptr)
    return;
  tracker_.set_kind(sample->tid, kinds_.kind_of(stack->chain, facts_));
  trim(*stack);
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
    hold(now_ns_, record);
  if (is_of_samples)
    return;
  tracker_.lost_switches(time_ns);
  running_.lose(now_ns_, time_ns);
}

/// Writes every other record to the stream, after the waits before it.
void PerfEngine::take_change(const stream::Record& record) {
  const std::uint64_t time_ns = now_ns_;
  const auto task = stream::parse_task(record);
  if (record.type == PERF_RECORD_FORK && task) {
    with_cpu_ ? tracker_.forked(task->pid, task->tid, time_ns) : tracker_.forked(task->tid);
  } else if (record.type == PERF_RECORD_EXIT && task) {
    tracker_.ended(task->tid, time_ns);
    numbers_.forget(task->tid);
    if (with_cpu_)
      hold_rest(running_.end(task->tid, time_ns), time_ns - 1);  // before its process is forgotten
  } else if (record.type == PERF_RECORD_COMM) {
    if (const auto comm = stream::parse_comm(record); comm && comm->is_exec) {
      tracker_.began_program(comm->tid);
      running_.execute(comm->pid, comm->tid, time_ns);
    }
  }
  hold(time_ns, record);
}

/// Gives the record the id of the event of waits, which readers know.
void PerfEngine::hold(std::uint64_t time_ns, const stream::Record& record) {
  record_.assign(reinterpret_cast<const char*>(record.bytes.data()), record.bytes.size());
  const std::uint64_t id = first_id();
  if (record_.size() >= stream::trailer_bytes(layout_))  // at its end
    std::memcpy(record_.data() + record_.size() - sizeof id, &id, sizeof id);
  recording_->waits.hold(time_ns, stream::view_record(std::as_bytes(std::span(record_))));
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

std::string_view PerfEngine::fix_of_wakeups() const {
  if (may_use_bpf_)
    return "use --engine bpf";
  return request_.with_raw_data
             ? "only --engine bpf separates it with --span"
             : "record as root, or with CAP_PERFMON, where /sys/kernel/tracing can be read";
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
  if (with_cpu_ && !request_.with_wakeups)
    closing.doubt("the time for which woken threads waited for a CPU is part of their waits",
                  fix_of_wakeups());
  if (!without_kinds_.empty())
    closing.doubt("kinds of waits are not known: " + without_kinds_, "allow more memory");
  describe_silent_threads(silent_threads_, with_cpu_, closing);
  recording_->stream.runtimes().describe(closing);
  recording::describe_spending(recording_->stream, closing);
  recording::finish_keeping(recording_->stream, closing);
}

std::string PerfEngine::problem() const {
  return recording::describe_unreadable(unreadable_, recording_->waits.processes(),
                                        stream::fix_of_unreadable_processes());
}

}  // namespace pe::waits

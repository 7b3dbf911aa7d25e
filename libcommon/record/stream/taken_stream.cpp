// SPDX-License-Identifier: MIT
#include "record/stream/taken_stream.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <span>
#include <utility>
#include <variant>

#include "base/clock.h"
#include "record/engines/attributes.h"
#include "stream/proc/thread_state.h"
#include "stream/user_copy.h"

namespace pe::record {
namespace {

constexpr std::uint64_t kRereadNs = 250'000'000;
constexpr std::uint64_t kReadShare = 20;
constexpr std::uint64_t kEventId = 1;
constexpr std::size_t kInstructionPointer = 16;

}  // namespace

OpenedEvent taken_event(const Request& request, std::vector<std::string>& notes) {
  const RingPlan plan{.stack_bytes = request.stack_bytes.value_or(kMaxStackBytes)};
  std::vector<std::string> of_counters;  // not used: limits of counters do not apply to us
  OpenedEvent event{.attr = make_attr(request, plan, "cpu-clock", of_counters),
                    .name = request.clock == Clock::kWall ? "wall-clock" : "cpu-clock",
                    .ids = {kEventId}};
  follow_tasks(event.attr);
  event.attr.build_id = 1;  // we write it, so the kernel need not support it
  event.attr.exclude_kernel = 1;
  event.attr.exclude_hv = 1;
  event.attr.exclude_callchain_kernel = 1;
  const std::uint64_t most_hz = most_hz_of(request.engine);
  event.attr.sample_freq = std::min(request.frequency_hz, most_hz);
  if (request.frequency_hz > most_hz)
    notes.push_back(fmt::format(
        "{} Hz is more than {}: sampling at {} Hz", request.frequency_hz,
        request.engine == Engine::kSignal ? "programs are interrupted" : "threads can be stopped",
        most_hz));
  return event;
}

void TakenStream::pass() {
  events_ = queue_.take();
  for (at_ = 0; at_ < events_.size(); ++at_) {
    // A round is closed when the next one starts.  So the stream of a killed recorder does not end
    // like a complete one.
    if (at_ == 0 && std::exchange(round_is_open_, true))
      stream_.writer().write_finished_round();
    std::visit([this](const auto& event) { write(event); }, events_[at_]);
  }
  constexpr std::uint64_t kFlushNs = 200'000'000;
  if (const std::uint64_t now_ns = monotonic_ns(); now_ns - last_flush_ns_ >= kFlushNs) {
    stream_.writer().flush();
    last_flush_ns_ = now_ns;
  }
}

void TakenStream::write(const TakenSample& sample) {
  ++passed_.samples;
  passed_.threads.insert(static_cast<std::uint32_t>(sample.tid));
  synthesizer_.set_time(sample.time_ns);
  follow_name(sample);
  follow_maps(sample.pid, sample.registers[kInstructionPointer]);
  write_record(sample);
}

void TakenStream::write(const TaskChange& change) {
  synthesizer_.set_time(change.time_ns);
  const stream::TaskRecord task{.pid = static_cast<std::uint32_t>(change.pid),
                                .parent_pid = static_cast<std::uint32_t>(change.parent_pid),
                                .tid = static_cast<std::uint32_t>(change.tid),
                                .parent_tid = static_cast<std::uint32_t>(change.parent_tid)};
  switch (change.kind) {
    case TaskChange::Kind::kBegan:
      synthesizer_.task(PERF_RECORD_FORK, task);
      return begin_process(change);
    case TaskChange::Kind::kEnded:
      names_.erase(change.tid);
      if (change.tid == change.pid)
        processes_.erase(change.pid);
      return synthesizer_.task(PERF_RECORD_EXIT, task);
    case TaskChange::Kind::kExec:
      names_.erase(change.tid);
      processes_.erase(change.pid);
      if (!change.name.empty())
        take_name(change.pid, change.tid, change.name, PERF_RECORD_MISC_COMM_EXEC);
      else if (const auto name = stream::comm_of(change.pid, change.tid))
        synthesizer_.comm(change.pid, change.tid, *name, PERF_RECORD_MISC_COMM_EXEC);
      if (!change.maps.empty())
        return take_maps(change.pid, processes_[change.pid], change.maps);
      return read_maps(change.pid, processes_[change.pid]);
  }
}

/// Writes what is known of a child from its start; it inherits the rest from its parent.
void TakenStream::begin_process(const TaskChange& change) {
  if (!change.name.empty())
    take_name(change.pid, change.tid, change.name);
  if (change.maps.empty())
    return;
  Process& process = processes_[change.pid];
  if (const auto parent = processes_.find(change.parent_pid); parent != processes_.end())
    process.maps = parent->second.maps;
  take_maps(change.pid, process, change.maps);
}

/// Writes COMM if the thread's name has changed.  The kernel would report prctl(2), but we must
/// check.
void TakenStream::follow_name(const TakenSample& sample) {
  if (!sample.name.empty())
    return take_name(sample.pid, sample.tid, sample.name);
  ThreadName& known = names_[sample.tid];
  if (known.read_ns != 0 && sample.time_ns - known.read_ns < kRereadNs)
    return;
  known.read_ns = sample.time_ns;
  if (const auto name = stream::comm_of(sample.pid, sample.tid))
    take_name(sample.pid, sample.tid, *name);
}

void TakenStream::take_name(pid_t pid, pid_t tid, const std::string& name, std::uint16_t misc) {
  std::string& known = names_[tid].name;
  if (name == known)
    return;
  known = name;
  synthesizer_.comm(pid, tid, name, misc);
}

void TakenStream::follow_maps(pid_t pid, std::uint64_t ip) {
  Process& process = processes_[pid];
  const std::uint64_t now_ns = monotonic_ns();
  if (now_ns < process.next_read_ns)
    return;
  const auto pages = stream::mapped_pages(pid);
  if (!pages)
    return;
  const bool is_known =
      stream_.history().processes().find(static_cast<std::uint32_t>(pid), ip) != nullptr;
  if (is_known && *pages == process.pages && now_ns - process.read_ns < kRereadNs)
    return;
  // Later events in this batch have already happened: after an exec the maps are another program's.
  const auto is_exec = [&](const TakenEvent& event) {
    const auto* change = std::get_if<TaskChange>(&event);
    return change != nullptr && change->kind == TaskChange::Kind::kExec && change->pid == pid;
  };
  const auto rest = events_.begin() + static_cast<std::ptrdiff_t>(at_);
  if (queue_.holds_exec_of(pid) || std::any_of(rest, events_.end(), is_exec))
    return;
  process.pages = *pages;
  read_maps(pid, process);
}

bool TakenStream::note_map(const stream::MapsLine& map, const Process& process,
                           std::set<Process::Map>& now) {
  constexpr std::uint32_t kWordBits = 32;
  const Process::Map key{map.start, map.end, map.file_offset,
                         std::uint64_t{map.device_major} << kWordBits | map.device_minor,
                         map.inode};
  now.insert(key);
  return !process.maps.contains(key);
}

void TakenStream::read_maps(pid_t pid, Process& process) {
  const std::uint64_t before_ns = monotonic_ns();
  std::set<Process::Map> now;
  synthesizer_.mappings(pid,
                        [&](const stream::MapsLine& map) { return note_map(map, process, now); });
  process.maps = std::move(now);
  process.read_ns = monotonic_ns();
  process.next_read_ns = process.read_ns + kReadShare * (process.read_ns - before_ns);
}

void TakenStream::take_maps(pid_t pid, Process& process, const std::string& text) {
  std::set<Process::Map> now;
  synthesizer_.mappings(pid, text,
                        [&](const stream::MapsLine& map) { return note_map(map, process, now); });
  process.maps = std::move(now);
}

/// Writes the layout of perf_event_open(2), "PERF_RECORD_SAMPLE".
void TakenStream::write_record(const TakenSample& sample) {
  const perf_event_attr& attr = event_.attr;
  const Bytes stack = sample.stack;
  const std::size_t wanted = std::min<std::size_t>(attr.sample_stack_user, kMostTakenStack);
  if (stack.size() > wanted)
    stream_.write(behind_record({.bytes = stack.subspan(wanted),
                                 .agreed_bytes = unwind::SampleUnwinder::kMostAgreementBytes},
                                behind_));
  builder_.begin(PERF_RECORD_SAMPLE, PERF_RECORD_MISC_USER)
      .add(event_.ids.front())
      .add(sample.registers[kInstructionPointer])
      .add(sample.pid)
      .add(sample.tid)
      .add(sample.time_ns)
      .add(sample.cpu)
      .add(std::uint32_t{0})
      .add(sample.period_ns);
  if ((attr.sample_type & PERF_SAMPLE_CALLCHAIN) != 0)
    builder_.add(std::uint64_t{0});
  const std::uint64_t abi = sample.is_64_bit ? PERF_SAMPLE_REGS_ABI_64 : PERF_SAMPLE_REGS_ABI_32;
  stream::add_user_regs(builder_, abi, attr.sample_regs_user, sample.registers);
  stream::add_user_stack(builder_, stack, wanted);
  const stream::Record record = stream::view_record(std::as_bytes(std::span(builder_.finish())));
  const auto cut = sample.is_cut && stream_.continues_stacks() ? stream::parse_sample(record, attr)
                                                               : std::nullopt;
  if (cut)
    stream_.write(record, stream_.read_behind(*cut));
  else
    stream_.write(record);
}

}  // namespace pe::record

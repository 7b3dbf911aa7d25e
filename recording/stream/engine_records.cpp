// SPDX-License-Identifier: MIT
#include "recording/stream/engine_records.h"

#include <fmt/format.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <span>
#include <utility>

#include "base/clock.h"
#include "base/error.h"
#include "recording/counters/attributes.h"
#include "recording/signal/layout.h"
#include "recording/stream/synthesize.h"
#include "recording/thread_state.h"
#include "stream/build_records.h"

namespace pe::recording {
namespace {

std::vector<stream::Ring> one_ring(std::size_t bytes) {
  std::vector<stream::Ring> rings;
  rings.push_back(stream::Ring::allocate(bytes));
  return rings;
}

}  // namespace

EngineRing::EngineRing(std::size_t bytes)
    : rings_(one_ring(bytes)),
      writer_(rings_.front()),
      wakes_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (!wakes_)
    throw_errno("eventfd", errno);
}

bool EngineRing::write(Bytes records, bool is_sample) {
  constexpr std::size_t kShare = 16;
  const std::size_t kept = is_sample ? writer_.ring_bytes() / kShare : 0;
  if (records.size() + kept > writer_.room())
    return false;
  writer_.add(records);
  writer_.publish();
  wake();
  return true;
}

void EngineRing::wake() noexcept {
  if (has_woken_.exchange(true))
    return;
  const std::uint64_t one = 1;
  (void)!::write(wakes_.get(), &one, sizeof one);  // cannot fail: the count is 0, or 1
}

void EngineRing::fail(std::exception_ptr why) noexcept {
  failure_ = std::move(why);
  has_failed_ = true;
  has_woken_ = false;
  wake();
}

void EngineRing::check() {
  if (has_failed_)
    std::rethrow_exception(failure_);
  std::uint64_t count = 0;
  (void)!::read(wakes_.get(), &count, sizeof count);
  has_woken_.exchange(false);  // later records wake us again; earlier ones are visible now
}

namespace {

constexpr std::uint64_t kRereadNs = 250'000'000;
constexpr std::uint64_t kReadShare = 20;
/// Reads may take this much CPU time at once, 100 of a starting interpreter, which maps its modules
/// one by one.  If each read had to rest, the code of the next modules would be unknown for some
/// samples.
constexpr std::uint64_t kReadAtOnceNs = 20'000'000;
/// The rests are this much longer if nothing indicates a change.
constexpr std::uint64_t kUnchanged = 5;
constexpr std::uint64_t kEventId = 1;

Bytes bytes_of_text(std::string_view text) { return std::as_bytes(std::span(text)); }

std::uint32_t id(pid_t pid) { return static_cast<std::uint32_t>(pid); }

bool has_mapped(pid_t pid, std::uint64_t inode) {
  bool has_it = false;
  stream::for_each_mapping(
      pid, [&](const stream::MapsLine& map) { has_it = has_it || map.inode == inode; });
  return has_it;
}

}  // namespace

OpenedEvent engine_event(const Request& request, std::vector<std::string>& notes) {
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
        "{} Hz is faster than {}: sampling at {} Hz", request.frequency_hz,
        request.engine == Engine::kSignal ? "programs are interrupted" : "threads can be stopped",
        most_hz));
  return event;
}

EngineRecords::EngineRecords(EngineRing& ring, const OpenedEvent& event)
    : ring_(ring), event_(event), synthesizer_(event.attr, [this](const stream::Record& record) {
        write(record.bytes, false);
      }) {}

void EngineRecords::read_scripts(Budget& budget) {
  scripts_.emplace(budget);
  moved_text_.emplace(budget, [this](std::uint32_t pid, auto avma, auto into) {
    return scripts_->memory().read(static_cast<pid_t>(pid), avma, into);
  });
  synthesizer_.recognise(*moved_text_);
}

/// Writes a record, or a sample with the internal records that belong to it.
void EngineRecords::write(Bytes records, bool is_sample) {
  write_loss();
  if (!ring_.write(records, is_sample)) {
    ++untold_;
    return ring_.add_lost(1);
  }
  const stream::Record record = stream::view_record(records);
  if (is_sample || stream::is_script_mapping(record))
    return;
  history_.apply(record);
  if (scripts_)
    scripts_->follow(history_, now_ns_);
}

/// Writes how many records have been lost, once there is room again.
void EngineRecords::write_loss() {
  if (untold_ == 0)
    return;
  stream::RecordBuilder lost;
  lost.begin(PERF_RECORD_LOST).add(event_.ids.front()).add(untold_);
  stream::add_sample_id(lost, event_.attr, {.time_ns = now_ns_, .id = event_.ids.front()});
  if (ring_.write(bytes_of_text(lost.finish()), true))
    untold_ = 0;
}

void EngineRecords::set_time(std::uint64_t time_ns) {
  now_ns_ = oldest_ns_ ? std::clamp(time_ns, *oldest_ns_, std::max(*oldest_ns_, monotonic_ns()))
                       : time_ns;
  synthesizer_.set_time(now_ns_);
}

/// Writes the layout of perf_event_open(2), "PERF_RECORD_SAMPLE".
void EngineRecords::sample(const CopiedSample& sample) {
  set_time(sample.time_ns);
  follow_name(sample);
  follow_maps(sample);
  set_time(sample.time_ns);
  const perf_event_attr& attr = event_.attr;
  builder_.begin(PERF_RECORD_SAMPLE, PERF_RECORD_MISC_USER)
      .add(event_.ids.front())
      .add(sample.registers[CopiedSample::kInstructionPointer])
      .add(sample.pid)
      .add(sample.tid)
      .add(now_ns_)
      .add(sample.cpu)
      .add(std::uint32_t{0})
      .add(sample.period_ns);
  if ((attr.sample_type & PERF_SAMPLE_CALLCHAIN) != 0)
    builder_.add(std::uint64_t{0});
  if (sample.user_part.empty())
    return write_copied(sample);
  builder_.add_bytes(sample.user_part);
  const Bytes record = bytes_of_text(builder_.finish());
  records_.clear();
  add_script(sample);
  if (records_.empty())
    return write(record, true);
  records_.insert(records_.end(), record.begin(), record.end());
  write(records_, true);
}

/// Writes the rest of a sample that we have copied ourselves, and before it the stack behind the
/// copy.  Without that, Drain reads the process's memory after a full copy.
void EngineRecords::write_copied(const CopiedSample& sample) {
  const perf_event_attr& attr = event_.attr;
  const std::size_t wanted = std::min(attr.sample_stack_user, inprocess::kMostCopiedBytes);
  const std::uint64_t abi = sample.is_64_bit ? PERF_SAMPLE_REGS_ABI_64 : PERF_SAMPLE_REGS_ABI_32;
  stream::add_user_regs(builder_, abi, attr.sample_regs_user, sample.registers);
  stream::add_user_stack(builder_, sample.stack, wanted);
  const Bytes record = bytes_of_text(builder_.finish());
  records_.clear();
  add_script(sample);
  if (sample.stack.size() >= wanted)
    make_behind_records({.bytes = sample.stack.subspan(wanted),
                         .agreed_bytes = unwind::SampleUnwinder::kMostAgreementBytes},
                        now_ns_, [this](auto pieces) {
                          for (const Bytes piece : pieces)
                            records_.insert(records_.end(), piece.begin(), piece.end());
                        });
  records_.insert(records_.end(), record.begin(), record.end());
  write(records_, true);
}

/// Adds the stack in the thread's interpreter.  Functions that are new precede it, in records of
/// their own.
void EngineRecords::add_script(const CopiedSample& sample) {
  if (!scripts_ || sample.script == nullptr)
    return;
  const languages::ScriptStack& stack =
      scripts_->name(id(sample.pid), *sample.script,
                     [&](std::uint32_t number, const stream::ScriptFunction& function) {
                       synthesizer_.script(sample.pid, number, function);
                     });
  if (!stack.empty())
    add_script_record(stack, now_ns_, records_);
}

void EngineRecords::expect(pid_t pid) {
  Process& process = processes_[pid];
  process.pages = stream::mapped_pages(pid).value_or(0);
  set_time(monotonic_ns());
  read_maps(pid);
  process.read_ns = monotonic_ns();
}

void EngineRecords::fork(const stream::TaskRecord& task, std::uint64_t time_ns) {
  set_time(time_ns);
  if (task.pid == task.tid)
    processes_[static_cast<pid_t>(task.pid)] = {.began_ns = now_ns_};
  synthesizer_.task(PERF_RECORD_FORK, task);
}

void EngineRecords::describe(const StartedProcess& process) {
  set_time(process.time_ns);
  processes_[process.pid].own_inode = process.own_inode;
  if (!process.name.empty())
    take_name(process.pid, process.pid, process.name);
  synthesizer_.mappings(process.pid, process.maps,
                        [&](const stream::MapsLine& map) { return is_new(id(process.pid), map); });
}

void EngineRecords::exec(const StartedProcess& process) {
  set_time(process.time_ns);
  const pid_t pid = process.pid;
  processes_[pid] = {.began_ns = now_ns_};
  names_.erase(pid);
  std::string name(process.name);
  if (name.empty())
    name = stream::comm_of(pid, pid).value_or("");
  if (!name.empty())
    synthesizer_.comm(pid, pid, name, PERF_RECORD_MISC_COMM_EXEC);
  names_[pid].name = name;
  describe({.pid = pid,
            .time_ns = process.time_ns,
            .maps = process.maps,
            .own_inode = process.own_inode});
  if (process.maps.empty())
    read_maps(pid);
}

void EngineRecords::exit(pid_t pid, pid_t tid, std::uint64_t time_ns) {
  set_time(time_ns);
  names_.erase(tid);
  if (tid == pid)
    processes_.erase(pid);
  synthesizer_.task(PERF_RECORD_EXIT, {.pid = id(pid), .tid = id(tid)});
}

/// Writes COMM if the thread's name has changed.  The kernel would report prctl(2), but we must
/// check.
void EngineRecords::follow_name(const CopiedSample& sample) {
  if (!sample.name.empty())
    return take_name(sample.pid, sample.tid, sample.name);
  ThreadName& known = names_[sample.tid];
  if (known.read_ns != 0 && sample.time_ns - known.read_ns < kRereadNs)
    return;
  known.read_ns = sample.time_ns;
  if (const auto name = stream::comm_of(sample.pid, sample.tid))
    take_name(sample.pid, sample.tid, *name);
}

void EngineRecords::take_name(pid_t pid, pid_t tid, std::string_view name) {
  std::string& known = names_[tid].name;
  if (name == known)
    return;
  known = name;
  synthesizer_.comm(pid, tid, name);
}

void EngineRecords::follow_maps(const CopiedSample& sample) {
  Process& process = processes_[sample.pid];
  const std::uint64_t now_ns = monotonic_ns();
  if (now_ns < process.next_read_ns)
    return;
  const auto pages = stream::mapped_pages(sample.pid);
  if (!pages)
    return;
  const bool is_known =
      history_.processes().find(id(sample.pid),
                                sample.registers[CopiedSample::kInstructionPointer]) != nullptr;
  const std::uint64_t rest_ns = std::max(kRereadNs, kUnchanged * kReadShare * process.took_ns);
  if (is_known && *pages == process.pages && now_ns - process.read_ns < rest_ns)
    return;
  process.pages = *pages;
  if (oldest_ns_)
    set_time(std::max(*oldest_ns_, process.began_ns));
  const std::uint64_t began_cpu_ns = own_cpu_ns();
  if (process.own_inode == 0 || has_mapped(sample.pid, process.own_inode))
    read_maps(sample.pid);
  process.read_ns = monotonic_ns();
  process.took_ns = own_cpu_ns() - began_cpu_ns;
  constexpr std::uint64_t kSavedNs = kReadShare * kReadAtOnceNs;
  process.next_read_ns = std::max(process.next_read_ns, now_ns - std::min(now_ns, kSavedNs)) +
                         kReadShare * process.took_ns;
}

void EngineRecords::read_maps(pid_t pid) {
  synthesizer_.mappings(pid, [&](const stream::MapsLine& map) { return is_new(id(pid), map); });
}

bool EngineRecords::is_new(std::uint32_t pid, const stream::MapsLine& map) const {
  const stream::Mapping* known = history_.processes().find(pid, map.start);
  return known == nullptr || known->start != map.start || known->end != map.end ||
         known->file_offset != map.file_offset || known->file->inode != map.inode ||
         known->file->path != Synthesizer::path_of(map);
}

}  // namespace pe::recording

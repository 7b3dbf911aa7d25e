// SPDX-License-Identifier: MIT
#include "recording/signal/sampled_process.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <limits>
#include <optional>
#include <string_view>
#include <utility>

#include "base/clock.h"
#include "recording/inprocess/atomics.h"
#include "recording/inprocess/runtime/tick.h"
#include "recording/signal/script_words.h"
#include "stream/proc/maps.h"

namespace pe::recording {
namespace {

using inprocess::load_published;
using inprocess::load_relaxed;
using inprocess::publish;

constexpr std::uint64_t kSoonMs = 100;

std::uint64_t now_ms() { return clock_ns(CLOCK_MONOTONIC_COARSE) / kNsPerMs; }

/// Whether SIGPROF is pending for a thread that blocks it.
bool has_blocked_signal(pid_t pid, pid_t tid) {
  const auto status = stream::status_of(pid, tid);
  constexpr std::uint64_t kBit = std::uint64_t{1} << (SIGPROF - 1);
  return status && (status->pending_signals & status->blocked_signals & kBit) != 0;
}

/// Adds to `sum` the growth of a count since `told`.  The count may also have shrunk.
void add_growth(const std::uint64_t& count, std::uint64_t& told, std::uint64_t& sum) {
  const std::uint64_t now = load_relaxed(count);
  sum += now - told;
  told = now;
}

}  // namespace

bool ThreadFilter::wants(pid_t tid, const std::string& name) {
  if (choice_.is_everything())
    return true;
  missed_.tids.erase(tid);
  missed_.names.erase(name);
  if (seen_names_.size() < kMostNames)
    seen_names_.insert(name);
  return choice_.tids.contains(tid) || choice_.names.contains(name);
}

SampledProcess::SampledProcess(inprocess::SharedMemory memory, pid_t pid, Fd ended,
                               Collected& collected)
    : memory_(std::move(memory)),
      pid_(pid),
      ended_(std::move(ended)),
      collected_(&collected),
      next_look_ms_(now_ms() + kSoonMs) {}

void SampledProcess::begin(bool had_program) {
  const std::string maps = memory_.maps();
  const bool is_fork = header().began_as == static_cast<std::uint32_t>(inprocess::BeganAs::kFork);
  ++collected_->counts.processes;
  last_ns_ = header().start_ns;
  const StartedProcess started{.pid = pid_,
                               .time_ns = last_ns_,
                               .name = header().command,
                               .maps = maps,
                               .own_inode = memory_.inode()};
  if (!had_program || is_fork)
    write_fork(pid_, static_cast<pid_t>(header().parent_pid), last_ns_);
  if (is_fork)
    collected_->records.describe(started);
  else
    collected_->records.exec(started);
}

void SampledProcess::set_script(const languages::ScriptProcess* script) {
  inprocess::ScriptOfProcess& shared = memory_.live_header().script;
  publish(shared.is_known, 0U);
  if (script == nullptr)
    return;
  shared.layout = script->layout();
  shared.runtime = script->runtime();
  publish(shared.is_known, 1U);
}

void SampledProcess::write_fork(pid_t tid, pid_t parent, std::uint64_t time_ns) {
  const auto parent_id = static_cast<std::uint32_t>(parent);
  collected_->records.fork({.pid = static_cast<std::uint32_t>(pid_),
                            .parent_pid = parent_id,
                            .tid = static_cast<std::uint32_t>(tid),
                            .parent_tid = parent_id},
                           time_ns);
}

void SampledProcess::drain() {
  const std::uint32_t threads = memory_.threads();
  if (slots_.size() < threads)
    slots_.resize(threads);
  check_timers();
  for (std::uint32_t slot = 0; slot < threads; ++slot)
    drain_slot(slot);
  count_losses();
}

/// The process finds out its kind of timer only after it has announced itself.
void SampledProcess::check_timers() {
  if (timer_kind_ == inprocess::TimerKind::kProcess ||
      load_relaxed(memory_.live_header().timer_kind) !=
          static_cast<std::uint32_t>(inprocess::TimerKind::kProcess))
    return;
  timer_kind_ = inprocess::TimerKind::kProcess;
  ++collected_->counts.by_process_timer;
}

void SampledProcess::drain_slot(std::uint32_t number) {
  inprocess::Thread& thread = memory_.thread(number);
  Slot& slot = slots_[number];
  // Read the state before head: nothing is written after the end.
  const std::uint32_t state = load_published(thread.state);
  if (state != inprocess::kLive && state != inprocess::kEnded)
    return;
  const std::uint64_t head = load_published(thread.head);
  // We asked for this thread, but it had ended: a thread that starts or ends itself leaves its
  // name.
  if (!slot.is_open && state == inprocess::kEnded && head == slot.tail && thread.name[0] == '\0') {
    free_slot(number);
    return;
  }
  if (!slot.is_open)
    open_slot(slot, thread);
  const std::uint64_t ring_bytes = header().ring_bytes;
  const std::uint64_t used = head - slot.tail;
  if (used != 0 || !slot.is_wanted)
    name_slot(slot, thread);
  if (used != 0) {
    looks_ = 0;
    next_look_ms_ = now_ms() + kSoonMs;
  }
  if (used > ring_bytes) {
    ++collected_->counts.damaged;
  } else if (used != 0) {
    if (memory_.read_ring(number, slot.tail, head, collected_->bytes))
      take_records(slot);
    else
      ++collected_->counts.damaged;
    constexpr std::uint64_t kPercent = 100;
    collected_->fullest_percent =
        std::max(collected_->fullest_percent, used * kPercent / ring_bytes);
  }
  if (used != 0) {  // else the line would be copied between CPUs for nothing
    slot.tail = head;
    publish(thread.tail, head);
  }
  add_growth(thread.lost_samples, slot.lost_samples, collected_->counts.lost_samples);
  add_growth(thread.lost_weight, slot.lost_weight, collected_->counts.lost_weight);
  add_growth(thread.uncopied_samples, slot.uncopied_samples, collected_->counts.uncopied_samples);
  if (state != inprocess::kEnded)
    return;
  close_slot(slot);
  if (just_ended_.size() < inprocess::kMaxThreads)
    just_ended_.insert(slot.tid);
  free_slot(number);
}

void SampledProcess::free_slot(std::uint32_t number) {
  inprocess::Thread& thread = memory_.thread(number);
  Slot& slot = slots_[number];
  if (slot.tail != slot.cleared_at)
    memory_.clear_ring(number);
  slot.cleared_at = slot.tail;
  inprocess::store_relaxed(thread.is_unwanted, 0U);
  publish(thread.state, static_cast<std::uint32_t>(inprocess::kFree));
}

/// A thread that claims a slot while another thread claims one for it has two, until it gives one
/// back.
bool SampledProcess::has_slot(pid_t tid) const {
  return std::ranges::any_of(slots_,
                             [=](const Slot& slot) { return slot.is_open && slot.tid == tid; });
}

void SampledProcess::open_slot(Slot& slot, inprocess::Thread& thread) {
  const auto tid = static_cast<pid_t>(load_relaxed(thread.tid));
  // In another pid namespace we know only the first thread's id.
  const bool is_first = load_relaxed(thread.tid) == header().pid;
  slot.tid = is_first ? pid_ : tid;
  const bool is_new = !has_slot(slot.tid);
  slot.is_open = true;
  slot.is_wanted = true;
  slot.is_blocking = slot.was_blocking = false;
  slot.opened_at = slot.tail;
  slot.named_ms = 0;
  slot.name.clear();
  if (!collected_->filter.wants_everything())  // else its first sample names it: 30 us each
    name_slot(slot, thread);
  if (!is_new)
    return;
  ++collected_->counts.threads;
  if (slot.tid == pid_)
    return;
  const std::uint64_t start_ns = load_relaxed(thread.start_ns);
  last_ns_ = std::max(last_ns_, start_ns);
  write_fork(slot.tid, pid_, start_ns);
}

/// Names change: threads often get theirs some time after they have started.
void SampledProcess::name_slot(Slot& slot, inprocess::Thread& thread) {
  constexpr std::uint64_t kOftenMs = 100;
  const std::uint64_t now = now_ms();
  if (slot.named_ms != 0 && now - slot.named_ms < kOftenMs)
    return;
  slot.named_ms = now;
  if (auto name = stream::comm_of(pid_, slot.tid)) {
    slot.name = std::move(*name);
  } else {
    char own[sizeof thread.name];
    std::memcpy(own, thread.name, sizeof own);
    own[sizeof own - 1] = '\0';
    if (own[0] != '\0')
      slot.name = own;
    else if (slot.name.empty())
      slot.name = header().command;
  }
  slot.is_wanted = collected_->filter.wants(slot.tid, slot.name);
  inprocess::store_relaxed(thread.is_unwanted, slot.is_wanted ? 0U : 1U);
}

void SampledProcess::take_records(const Slot& slot) {
  if (!slot.is_wanted)
    return;
  bool is_whole = true;
  ByteReader reader(collected_->bytes);
  collected_->script.frames.clear();
  while (is_whole && !reader.empty()) {
    const auto record = stream::take_record(reader);
    is_whole = record && (take_script(*record) || take_record(slot, *record));
  }
  collected_->counts.damaged += is_whole ? 0 : 1;
}

/// Keeps a stack in an interpreter for the sample that follows.  Returns false for another record.
bool SampledProcess::take_script(const stream::Record& record) {
  if (record.type != inprocess::kRecordScript)
    return false;
  languages::ScriptFrames& stack = collected_->script;
  stack.is_complete = record.misc != inprocess::kMiscScriptCut;
  ByteReader words(record.body());
  while (const auto frame = words.take<inprocess::ScriptWords>())
    if (stack.frames.size() < languages::kMostScriptFrames)
      stack.frames.push_back(inprocess::script_frame(*frame));
  return true;
}

/// Returns false if it is no record that a handler writes.  We write a part of it unchanged into a
/// record of ours, which has 24 bytes more.
bool SampledProcess::take_record(const Slot& slot, const stream::Record& record) {
  const inprocess::Header& header = memory_.header();
  const auto sample =
      stream::parse_sample(record, inprocess::sample_attr(header.hz, header.stack_bytes));
  if (!record.is_sample() || !sample || sample->user_regs_abi != PERF_SAMPLE_REGS_ABI_64 ||
      sample->user_part.end != record.bytes.size() ||
      record.bytes.size() % sizeof(std::uint64_t) != 0 ||
      record.bytes.size() > inprocess::record_bytes(inprocess::kMostCopiedBytes))
    return false;
  const std::uint64_t period_ns = kNsPerSecond / header.hz;
  const std::uint64_t weight = std::clamp<std::uint64_t>(sample->period / period_ns, 1,
                                                         std::numeric_limits<std::uint32_t>::max());
  // The process's timer sends one signal per tick, no matter how many of its periods have passed.
  const std::uint64_t represented_ns = std::max(
      weight * period_ns, timer_kind_ == inprocess::TimerKind::kProcess ? inprocess::tick_ns() : 0);
  CollectorCounts& counts = collected_->counts;
  ++counts.samples;
  counts.weight += weight;
  counts.sampled_ns += represented_ns;
  counts.sampled_processes += std::exchange(has_samples_, true) ? 0 : 1;
  last_ns_ = std::max(last_ns_, sample->time_ns);
  CopiedSample copied{.pid = pid_,
                      .tid = slot.tid,
                      .time_ns = sample->time_ns,
                      .period_ns = represented_ns,
                      .user_part = record.bytes.subspan(sample->user_part.begin),
                      .name = slot.name};
  copied.registers[CopiedSample::kInstructionPointer] = sample->ip;
  copied.script = collected_->script.frames.empty() ? nullptr : &collected_->script;
  collected_->records.sample(copied);
  collected_->script.frames.clear();
  return true;
}

void SampledProcess::close_slot(Slot& slot) {
  if (std::exchange(slot.is_open, false) && !has_slot(slot.tid) && slot.tid != pid_)
    collected_->records.exit(pid_, slot.tid, last_ns_);
}

void SampledProcess::count_losses() {
  inprocess::Header& header = memory_.live_header();
  add_growth(std::max(load_relaxed(header.without_room), without_slot_), without_room_,
             collected_->counts.threads_without_room);
  add_growth(header.before_reader, before_reader_, collected_->counts.threads_before_reader);
  add_growth(header.without_variables, without_variables_,
             collected_->counts.threads_without_variables);
  add_growth(header.without_timer, without_timer_, collected_->counts.threads_without_timer);
  add_growth(header.left_out, left_out_, collected_->counts.left_out);
  add_growth(header.without_stack, without_stack_, collected_->counts.threads_without_stack);
  if (load_relaxed(header.is_closed) != 0 && !std::exchange(is_closed_, true))
    ++collected_->counts.closed_processes;
  const auto why = static_cast<inprocess::WhyStopped>(load_relaxed(header.why_stopped));
  if (why == inprocess::WhyStopped::kNot || std::exchange(has_stopped_, true))
    return;
  if (why == inprocess::WhyStopped::kFilter)
    ++collected_->counts.stopped_by_filter;
  else if (why == inprocess::WhyStopped::kSmallStack)
    ++collected_->counts.stopped_by_stack;
  else
    ++collected_->counts.stopped_processes;
}

void SampledProcess::check_threads() {
  constexpr std::uint64_t kOftenNs = 500 * kNsPerMs;
  constexpr std::uint64_t kRests = 200;  // listing 5,000 threads takes 5 ms
  const std::uint64_t now_ns = monotonic_ns();
  if (now_ns < next_scan_ns_ || static_cast<pid_t>(header().pid) != pid_)
    return;
  const std::uint64_t before_ns = own_cpu_ns();
  ask_for_threads();
  count_blocking();
  next_scan_ns_ = now_ns + std::max(kOftenNs, kRests * (own_cpu_ns() - before_ns));
}

/// A process without new samples may have executed another program, which has not loaded the
/// library.  In such a process two successive checks find our memory unmapped.  A program that has
/// loaded the library announces itself between them.  Sleeping processes are checked less often.
bool SampledProcess::find_other_program(std::size_t running) {
  const std::uint64_t now = now_ms();
  constexpr std::uint64_t kMostDoublings = 3, kFew = 64;
  if (has_left_ || now < next_look_ms_)
    return false;
  const std::uint64_t crowd = 1 + running / kFew;
  next_look_ms_ = now + crowd * (kSoonMs << std::min(looks_++, kMostDoublings));
  bool has_memory = false;  // without mappings it is about to end
  bool is_mapped = false;
  stream::for_each_mapping(pid_, [&](const stream::MapsLine& map) {
    has_memory = true;
    is_mapped = is_mapped || map.path.find(inprocess::kMemoryName) != std::string_view::npos;
  });
  const bool is_absent = has_memory && !is_mapped;
  has_left_ = is_absent && was_absent_;
  was_absent_ = is_absent;
  if (is_absent)
    next_look_ms_ = now + kSoonMs;
  if (has_left_)
    count_other_program();
  return true;
}

/// A child of vfork(2) does not announce itself unless its program does.
void SampledProcess::find_strangers(const std::function<bool(pid_t)>& is_sampled) {
  std::set<pid_t> seen;
  for (const pid_t child : stream::children_of(pid_)) {
    const auto status = is_sampled(child) ? std::nullopt : stream::status_of(child);
    if (!status || !status->has_memory)
      continue;
    seen.insert(child);
    if (strangers_.contains(child) && collected_->strangers.insert(child).second)
      count_other_program();
  }
  strangers_ = std::move(seen);
}

/// Counts a program without the library, unless it is one that `left_out` counts already.
void SampledProcess::count_other_program() {
  if (left_out_seen_ < left_out_)
    ++left_out_seen_;
  else
    ++collected_->counts.other_programs;
}

/// Found threads may end unnoticed, if they block all signals or clone(2) started them.  Only we
/// change the state of their slots: nobody else claims a live slot, and no handler runs in an ended
/// thread.
void SampledProcess::end_gone_threads(const std::vector<pid_t>& tids) {
  for (std::uint32_t number = 0; number < slots_.size(); ++number) {
    const Slot& slot = slots_[number];
    inprocess::Thread& thread = memory_.thread(number);
    // A list that is read while threads end may lack a live thread, so we check the thread by its
    // id.
    if (slot.is_open && !std::ranges::binary_search(tids, slot.tid) &&
        load_published(thread.state) == inprocess::kLive && stream::comm_of(pid_, pid_) &&
        !stream::comm_of(pid_, slot.tid))
      publish(thread.state, static_cast<std::uint32_t>(inprocess::kEnded));
  }
}

/// Reports unsampled threads to the process, so that one of its handlers starts to sample them.
/// Libraries or clone(2) started these threads, not pthread_create(3) calls of the program.  If the
/// table is full, counts them instead: the maximum at one time.  Threads that have just announced
/// their end are left out, because they may exist a little longer.
void SampledProcess::ask_for_threads() {
  std::set<pid_t> known;
  for (const Slot& slot : slots_)
    if (slot.is_open)
      known.insert(slot.tid);
  const std::vector<pid_t> tids = stream::threads_of(pid_);
  end_gone_threads(tids);
  const bool is_full = known.size() >= header().max_threads;
  known.merge(std::exchange(just_ended_, {}));
  inprocess::Header& header = memory_.live_header();
  if (is_full) {
    const auto has_none = [&](pid_t tid) { return !known.contains(tid); };
    without_slot_ = std::max<std::uint64_t>(without_slot_, std::ranges::count_if(tids, has_none));
    return;
  }
  // The first element is written last: the handler checks only that one.
  std::size_t place = inprocess::kWantedTids;
  for (const pid_t tid : tids)
    if (!known.contains(tid) && place > 1)
      publish(header.wanted_tids[--place], static_cast<std::uint32_t>(tid));
  if (place < inprocess::kWantedTids)
    publish(header.wanted_tids[0], load_relaxed(header.wanted_tids[place]));
}

/// Counts threads that block SIGPROF.  Some threads of the C library always block all signals.
/// Checks kMostChecks threads, and the next ones at the next call: a check takes some 10 us.
void SampledProcess::count_blocking() {
  constexpr int kMostChecks = 128;
  int checks = 0;
  for (std::size_t seen = 0; seen < slots_.size() && checks < kMostChecks; ++seen) {
    next_checked_ = next_checked_ + 1 < slots_.size() ? next_checked_ + 1 : 0;
    Slot& slot = slots_[next_checked_];
    if (!slot.is_open || slot.is_blocking || slot.tail != slot.opened_at)
      continue;
    ++checks;
    // A single hit may be within a call of pthread_create(3), or within the handler.
    const bool was_blocking = std::exchange(slot.was_blocking, has_blocked_signal(pid_, slot.tid));
    slot.is_blocking = was_blocking && slot.was_blocking;
    collected_->counts.threads_that_block += slot.is_blocking ? 1 : 0;
  }
}

void SampledProcess::finish() {
  drain();
  for (Slot& slot : slots_)
    close_slot(slot);
}

}  // namespace pe::recording

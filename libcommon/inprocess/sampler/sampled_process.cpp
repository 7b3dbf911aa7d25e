// SPDX-License-Identifier: MIT
#include "inprocess/sampler/sampled_process.h"

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
#include "inprocess/atomics.h"
#include "stream/proc/maps.h"

namespace pe::inprocess {
namespace {

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

SampledProcess::SampledProcess(SharedMemory memory, pid_t pid, Fd ended, Collected& collected)
    : memory_(std::move(memory)),
      pid_(pid),
      ended_(std::move(ended)),
      collected_(&collected),
      next_look_ms_(now_ms() + kSoonMs) {}

void SampledProcess::begin() {
  const std::string maps = memory_.maps();
  const bool is_fork = header().began_as == static_cast<std::uint32_t>(BeganAs::kFork);
  ++collected_->counts.processes;
  collected_->events.on_process({.pid = pid_,
                                 .parent_pid = static_cast<pid_t>(header().parent_pid),
                                 .began_as = is_fork ? BeganAs::kFork : BeganAs::kProgram,
                                 .time_ns = header().start_ns,
                                 .command = header().command,
                                 .maps = maps,
                                 .memory_inode = memory_.inode()});
}

void SampledProcess::drain() {
  const std::uint32_t threads = memory_.threads();
  if (slots_.size() < threads)
    slots_.resize(threads);
  look_at_timers();
  for (std::uint32_t slot = 0; slot < threads; ++slot)
    drain_slot(slot);
  count_losses();
}

/// The process finds out its kind of timer only after it has announced itself.
void SampledProcess::look_at_timers() {
  if (timer_kind_ == TimerKind::kProcess || load_relaxed(memory_.live_header().timer_kind) !=
                                                static_cast<std::uint32_t>(TimerKind::kProcess))
    return;
  timer_kind_ = TimerKind::kProcess;
  ++collected_->counts.by_process_timer;
}

void SampledProcess::drain_slot(std::uint32_t number) {
  Thread& thread = memory_.thread(number);
  Slot& slot = slots_[number];
  // Read the state before head: nothing is written after the end.
  const std::uint32_t state = load_published(thread.state);
  if (state != kLive && state != kEnded)
    return;
  const std::uint64_t head = load_published(thread.head);
  // We asked for this thread, but it had ended: a thread that starts or ends itself leaves its
  // name.
  if (!slot.is_open && state == kEnded && head == slot.tail && thread.name[0] == '\0') {
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
  slot.tail = head;
  publish(thread.tail, head);
  add_growth(thread.lost_samples, slot.lost_samples, collected_->counts.lost_samples);
  add_growth(thread.lost_weight, slot.lost_weight, collected_->counts.lost_weight);
  if (state != kEnded)
    return;
  close_slot(slot);
  if (just_ended_.size() < kMaxThreads)
    just_ended_.insert(slot.tid);
  free_slot(number);
}

void SampledProcess::free_slot(std::uint32_t number) {
  Thread& thread = memory_.thread(number);
  Slot& slot = slots_[number];
  if (slot.tail != slot.cleared_at)
    memory_.clear_ring(number);
  slot.cleared_at = slot.tail;
  store_relaxed(thread.is_unwanted, 0U);
  publish(thread.state, static_cast<std::uint32_t>(kFree));
}

/// A thread that claims a slot while another thread claims one for it has two, until it gives one
/// back.
bool SampledProcess::has_slot(pid_t tid) const {
  return std::ranges::any_of(slots_,
                             [=](const Slot& slot) { return slot.is_open && slot.tid == tid; });
}

void SampledProcess::open_slot(Slot& slot, Thread& thread) {
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
  name_slot(slot, thread);
  if (!is_new)
    return;
  ++collected_->counts.threads;
  collected_->events.on_thread(thread_of(slot), load_relaxed(thread.start_ns));
}

/// Names change: threads often get theirs some time after they have started.
void SampledProcess::name_slot(Slot& slot, Thread& thread) {
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
  store_relaxed(thread.is_unwanted, slot.is_wanted ? 0U : 1U);
}

void SampledProcess::take_records(const Slot& slot) {
  if (!slot.is_wanted)
    return;
  bool is_whole = true;
  ByteReader reader(collected_->bytes);
  while (is_whole && !reader.empty()) {
    const auto record = stream::take_record(reader);
    is_whole = record && take_record(slot, *record);
  }
  collected_->counts.damaged += is_whole ? 0 : 1;
}

/// Returns false if it is no record that a handler writes.
bool SampledProcess::take_record(const Slot& slot, const stream::Record& record) {
  const Header& header = memory_.header();
  auto sample = stream::parse_sample(record, sample_attr(header.hz, header.stack_bytes));
  if (!record.is_sample() || !sample || sample->user_regs_abi != PERF_SAMPLE_REGS_ABI_64 ||
      sample->user_part.end != record.bytes.size())
    return false;
  const std::uint64_t period_ns = kNsPerSecond / header.hz;
  const std::uint64_t weight = std::clamp<std::uint64_t>(sample->period / period_ns, 1,
                                                         std::numeric_limits<std::uint32_t>::max());
  ++collected_->counts.samples;
  collected_->counts.weight += weight;
  sample->pid = static_cast<std::uint32_t>(pid_);
  sample->tid = static_cast<std::uint32_t>(slot.tid);
  sample->period = weight * period_ns;
  // The process's timer sends one signal per tick, no matter how many of its periods have passed.
  if (timer_kind_ == TimerKind::kProcess)
    sample->period = std::max(sample->period, tick_ns());
  collected_->events.on_sample(thread_of(slot), *sample);
  return true;
}

void SampledProcess::close_slot(Slot& slot) {
  if (std::exchange(slot.is_open, false) && !has_slot(slot.tid))
    collected_->events.on_thread_end(thread_of(slot));
}

void SampledProcess::count_losses() {
  Header& header = memory_.live_header();
  add_growth(std::max(load_relaxed(header.without_room), without_slot_), without_room_,
             collected_->counts.threads_without_room);
  add_growth(header.before_reader, before_reader_, collected_->counts.threads_before_reader);
  add_growth(header.without_variables, without_variables_,
             collected_->counts.threads_without_variables);
  add_growth(header.without_timer, without_timer_, collected_->counts.threads_without_timer);
  add_growth(header.left_out, left_out_, collected_->counts.left_out);
  if (load_relaxed(header.has_stopped) == 0 || has_stopped_)
    return;
  has_stopped_ = true;
  ++collected_->counts.stopped_processes;
}

void SampledProcess::look_at_threads() {
  constexpr std::uint64_t kOftenMs = 500;
  const std::uint64_t now = now_ms();
  if (now - looked_ms_ < kOftenMs || static_cast<pid_t>(header().pid) != pid_)
    return;
  looked_ms_ = now;
  ask_for_threads();
  count_blocking();
}

/// A process without new samples may have executed another program, which has not loaded the
/// library.  In such a process two successive checks find our memory unmapped.  A program that has
/// loaded the library announces itself between them.  Sleeping processes are checked less often.
bool SampledProcess::look_for_other_program(std::size_t running) {
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
    is_mapped = is_mapped || map.path.find(kMemoryName) != std::string_view::npos;
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
void SampledProcess::look_for_strangers(const std::function<bool(pid_t)>& is_sampled) {
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
    Thread& thread = memory_.thread(number);
    // A list that is read while threads end may lack a live thread, so we check the thread by its
    // id.
    if (slot.is_open && !std::ranges::binary_search(tids, slot.tid) &&
        load_published(thread.state) == kLive && stream::comm_of(pid_, pid_) &&
        !stream::comm_of(pid_, slot.tid))
      publish(thread.state, static_cast<std::uint32_t>(kEnded));
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
  Header& header = memory_.live_header();
  if (is_full) {
    const auto has_none = [&](pid_t tid) { return !known.contains(tid); };
    without_slot_ = std::max<std::uint64_t>(without_slot_, std::ranges::count_if(tids, has_none));
    return;
  }
  // The first element is written last: the handler checks only that one.
  std::size_t place = kWantedTids;
  for (const pid_t tid : tids)
    if (!known.contains(tid) && place > 1)
      publish(header.wanted_tids[--place], static_cast<std::uint32_t>(tid));
  if (place < kWantedTids)
    publish(header.wanted_tids[0], load_relaxed(header.wanted_tids[place]));
}

/// Counts threads that block SIGPROF.  Some threads of the C library always block all signals.
void SampledProcess::count_blocking() {
  for (Slot& slot : slots_) {
    if (!slot.is_open || slot.is_blocking || slot.tail != slot.opened_at)
      continue;
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
  collected_->events.on_process_end(pid_);
}

ThreadOf SampledProcess::thread_of(const Slot& slot) const { return {pid_, slot.tid, slot.name}; }

}  // namespace pe::inprocess

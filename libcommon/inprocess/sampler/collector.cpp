// SPDX-License-Identifier: MIT
#include "inprocess/sampler/collector.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <ctime>
#include <iterator>
#include <limits>
#include <utility>
#include <variant>

#include "base/clock.h"
#include "base/descriptors.h"
#include "base/parse_number.h"
#include "inprocess/atomics.h"
#include "stream/proc/maps.h"

namespace pe::inprocess {
namespace {

constexpr std::uint64_t kSoonMs = 100;
constexpr int kShortestWaitMs = 2, kLongestWaitMs = 100, kFirstWaitMs = 10;

bool has_process_ended(pid_t pid, const Fd& pidfd) {
  if (!pidfd)
    return ::kill(pid, 0) != 0 && errno == ESRCH;
  pollfd polled{pidfd.get(), POLLIN, 0};
  return ::poll(&polled, 1, 0) == 1;
}

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

Collector::Collector(Events& events, ThreadChoice choice)
    : events_(events),
      choice_(std::move(choice)),
      missed_(choice_),
      listener_("pe-sampler"),
      wait_ms_(kFirstWaitMs) {}

void Collector::pass() {
  fullest_percent_ = 0;
  // A process needs two descriptors while it runs.  Some descriptors stay free for readers of /proc
  // and binaries.
  listener_.keep_free(spare_descriptors());
  while (pass_once() && !listener_.is_listening()) {
  }
  pace();
}

/// Returns whether descriptors have become free.
bool Collector::pass_once() {
  const bool has_received =
      listener_.take_in([this](pid_t pid, Fd fd) { begin(pid, std::move(fd)); });
  // Check for ended processes before reading the rings: an ended process writes nothing more.
  const auto first_ended = std::stable_partition(
      running_.begin(), running_.end(),
      [](const Running& process) { return !has_process_ended(process.pid, process.ended); });
  std::vector<Running> ended(std::make_move_iterator(first_ended),
                             std::make_move_iterator(running_.end()));
  running_.erase(first_ended, running_.end());
  for (Running& process : ended)
    finish(process);
  for (Running& process : running_) {
    drain(process);
    look_at_threads(process);
    look_for_other_program(process);
  }
  return has_received || !ended.empty();
}

/// Returns the time until a ring is three quarters full, if every stack has the maximum depth.
int Collector::safe_wait_ms(const Header& header) {
  const std::uint64_t records = header.ring_bytes / record_bytes(header.stack_bytes);
  const std::uint64_t ms = records * kMsPerSecond / header.hz * 3 / 4;
  return static_cast<int>(std::clamp<std::uint64_t>(ms, kShortestWaitMs, kLongestWaitMs));
}

/// Sets the wait so that rings are at most a quarter full at the next pass.
void Collector::pace() {
  constexpr std::uint64_t kSoonerPercent = 25, kLaterPercent = 10;
  int longest = kLongestWaitMs;
  for (const Running& process : running_)
    longest = std::min(longest, safe_wait_ms(process.memory.header()));
  if (fullest_percent_ > kSoonerPercent)
    wait_ms_ = std::max(kShortestWaitMs, wait_ms_ / 2);
  else if (fullest_percent_ < kLaterPercent)
    wait_ms_ += 1 + wait_ms_ / 8;
  wait_ms_ = std::min(wait_ms_, longest);
}

void Collector::begin(pid_t pid, Fd fd) {
  auto checked = SharedMemory::check(std::move(fd));
  if (const auto* why = std::get_if<std::string>(&checked)) {
    listener_.refuse("that sent " + *why);
    return;
  }
  const auto before = std::find_if(running_.begin(), running_.end(),
                                   [&](const Running& process) { return process.pid == pid; });
  if (before != running_.end()) {
    Running ended = std::move(*before);
    running_.erase(before);
    finish(ended);
  }
  Fd ended(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  if (ended)
    listener_.watch(ended.get());
  Running process{std::move(std::get<SharedMemory>(checked)), pid, std::move(ended), {}};
  process.next_look_ms = now_ms() + kSoonMs;
  const Header& header = process.memory.header();
  const std::string maps = process.memory.maps();
  ++counts_.processes;
  events_.on_process({pid, static_cast<pid_t>(header.parent_pid),
                      header.began_as == static_cast<std::uint32_t>(BeganAs::kFork)
                          ? BeganAs::kFork
                          : BeganAs::kProgram,
                      header.start_ns, header.command, maps, process.memory.inode()});
  running_.push_back(std::move(process));
  wait_ms_ = std::min(wait_ms_, kFirstWaitMs);
}

void Collector::drain(Running& process) {
  const std::uint32_t threads = process.memory.threads();
  if (process.slots.size() < threads)
    process.slots.resize(threads);
  look_at_timers(process);
  for (std::uint32_t slot = 0; slot < threads; ++slot)
    drain_slot(process, slot);
  count_losses(process);
}

/// The process finds out its kind of timer only after it has announced itself.
void Collector::look_at_timers(Running& process) {
  if (process.timer_kind == TimerKind::kProcess ||
      load_relaxed(process.memory.live_header().timer_kind) !=
          static_cast<std::uint32_t>(TimerKind::kProcess))
    return;
  process.timer_kind = TimerKind::kProcess;
  ++counts_.by_process_timer;
}

void Collector::drain_slot(Running& process, std::uint32_t number) {
  Thread& thread = process.memory.thread(number);
  Slot& slot = process.slots[number];
  // Read the state before head: nothing is written after the end.
  const std::uint32_t state = load_published(thread.state);
  if (state != kLive && state != kEnded)
    return;
  const std::uint64_t head = load_published(thread.head);
  // We asked for this thread, but it had ended: a thread that starts or ends itself leaves its
  // name.
  if (!slot.is_open && state == kEnded && head == slot.tail && thread.name[0] == '\0') {
    free_slot(process, number);
    return;
  }
  if (!slot.is_open)
    open_slot(process, slot, thread);
  const std::uint64_t ring_bytes = process.memory.header().ring_bytes;
  const std::uint64_t used = head - slot.tail;
  if (used != 0 || !slot.is_wanted)
    name_slot(process, slot, thread);
  if (used != 0) {
    process.looks = 0;
    process.next_look_ms = now_ms() + kSoonMs;
  }
  if (used > ring_bytes) {
    ++counts_.damaged;
  } else if (used != 0) {
    if (process.memory.read_ring(number, slot.tail, head, bytes_))
      take_records(process, slot);
    else
      ++counts_.damaged;
    constexpr std::uint64_t kPercent = 100;
    fullest_percent_ = std::max(fullest_percent_, used * kPercent / ring_bytes);
  }
  slot.tail = head;
  publish(thread.tail, head);
  add_growth(thread.lost_samples, slot.lost_samples, counts_.lost_samples);
  add_growth(thread.lost_weight, slot.lost_weight, counts_.lost_weight);
  if (state != kEnded)
    return;
  close_slot(process, slot);
  if (process.just_ended.size() < kMaxThreads)
    process.just_ended.insert(slot.tid);
  free_slot(process, number);
}

void Collector::free_slot(Running& process, std::uint32_t number) {
  Thread& thread = process.memory.thread(number);
  Slot& slot = process.slots[number];
  if (slot.tail != slot.cleared_at)
    process.memory.clear_ring(number);
  slot.cleared_at = slot.tail;
  store_relaxed(thread.is_unwanted, 0U);
  publish(thread.state, static_cast<std::uint32_t>(kFree));
}

/// A thread that claims a slot while another thread claims one for it has two, until it gives one
/// back.
bool Collector::has_slot(const Running& process, pid_t tid) {
  return std::ranges::any_of(process.slots,
                             [=](const Slot& slot) { return slot.is_open && slot.tid == tid; });
}

void Collector::open_slot(const Running& process, Slot& slot, Thread& thread) {
  const auto tid = static_cast<pid_t>(load_relaxed(thread.tid));
  // In another pid namespace we know only the first thread's id.
  const bool is_first = load_relaxed(thread.tid) == process.memory.header().pid;
  slot.tid = is_first ? process.pid : tid;
  const bool is_new = !has_slot(process, slot.tid);
  slot.is_open = true;
  slot.is_wanted = true;
  slot.is_blocking = slot.was_blocking = false;
  slot.opened_at = slot.tail;
  slot.named_ms = 0;
  slot.name.clear();
  name_slot(process, slot, thread);
  if (!is_new)
    return;
  ++counts_.threads;
  events_.on_thread(thread_of(process, slot), load_relaxed(thread.start_ns));
}

/// Names change: threads often get theirs some time after they have started.
void Collector::name_slot(const Running& process, Slot& slot, Thread& thread) {
  constexpr std::uint64_t kOftenMs = 100;
  const std::uint64_t now = now_ms();
  if (slot.named_ms != 0 && now - slot.named_ms < kOftenMs)
    return;
  slot.named_ms = now;
  if (auto name = stream::comm_of(process.pid, slot.tid)) {
    slot.name = std::move(*name);
  } else {
    char own[sizeof thread.name];
    std::memcpy(own, thread.name, sizeof own);
    own[sizeof own - 1] = '\0';
    if (own[0] != '\0')
      slot.name = own;
    else if (slot.name.empty())
      slot.name = process.memory.header().command;
  }
  slot.is_wanted = choice_.is_everything() || choice_.tids.contains(slot.tid) ||
                   choice_.names.contains(slot.name);
  note_name(slot);
  store_relaxed(thread.is_unwanted, slot.is_wanted ? 0U : 1U);
}

void Collector::note_name(const Slot& slot) {
  if (choice_.is_everything())
    return;
  missed_.tids.erase(slot.tid);
  if (const auto missed = missed_.names.find(slot.name); missed != missed_.names.end())
    missed_.names.erase(missed);
  if (seen_names_.size() < kMostNames)
    seen_names_.insert(slot.name);
}

void Collector::take_records(const Running& process, const Slot& slot) {
  if (!slot.is_wanted)
    return;
  bool is_whole = true;
  ByteReader reader(bytes_);
  while (is_whole && !reader.empty()) {
    const auto record = stream::take_record(reader);
    is_whole = record && take_record(process, slot, *record);
  }
  counts_.damaged += is_whole ? 0 : 1;
}

/// Returns false if it is no record that a handler writes.
bool Collector::take_record(const Running& process, const Slot& slot,
                            const stream::Record& record) {
  const Header& header = process.memory.header();
  auto sample = stream::parse_sample(record, sample_attr(header.hz, header.stack_bytes));
  if (!record.is_sample() || !sample || sample->user_regs_abi != PERF_SAMPLE_REGS_ABI_64 ||
      sample->user_part.end != record.bytes.size())
    return false;
  const std::uint64_t period_ns = kNsPerSecond / header.hz;
  const std::uint64_t weight = std::clamp<std::uint64_t>(sample->period / period_ns, 1,
                                                         std::numeric_limits<std::uint32_t>::max());
  ++counts_.samples;
  counts_.weight += weight;
  sample->pid = static_cast<std::uint32_t>(process.pid);
  sample->tid = static_cast<std::uint32_t>(slot.tid);
  sample->period = weight * period_ns;
  // The process's timer sends one signal per tick, no matter how many of its periods have passed.
  if (process.timer_kind == TimerKind::kProcess)
    sample->period = std::max(sample->period, tick_ns());
  events_.on_sample(thread_of(process, slot), *sample);
  return true;
}

void Collector::close_slot(const Running& process, Slot& slot) {
  if (std::exchange(slot.is_open, false) && !has_slot(process, slot.tid))
    events_.on_thread_end(thread_of(process, slot));
}

void Collector::count_losses(Running& process) {
  Header& header = process.memory.live_header();
  add_growth(std::max(load_relaxed(header.without_room), process.without_slot),
             process.without_room, counts_.threads_without_room);
  add_growth(header.before_reader, process.before_reader, counts_.threads_before_reader);
  add_growth(header.without_variables, process.without_variables,
             counts_.threads_without_variables);
  add_growth(header.without_timer, process.without_timer, counts_.threads_without_timer);
  add_growth(header.left_out, process.left_out, counts_.left_out);
  if (load_relaxed(header.has_stopped) == 0 || process.has_stopped)
    return;
  process.has_stopped = true;
  ++counts_.stopped_processes;
}

void Collector::look_at_threads(Running& process) {
  constexpr std::uint64_t kOftenMs = 500;
  const std::uint64_t now = now_ms();
  if (now - process.looked_ms < kOftenMs ||
      static_cast<pid_t>(process.memory.header().pid) != process.pid)
    return;
  process.looked_ms = now;
  ask_for_threads(process);
  count_blocking(process);
}

/// A process without new samples may have executed another program, which has not loaded the
/// library.  In such a process two successive checks find our memory unmapped.  A program that has
/// loaded the library announces itself between them.  Sleeping processes are checked less often.
void Collector::look_for_other_program(Running& process) {
  const std::uint64_t now = now_ms();
  constexpr std::uint64_t kMostDoublings = 3, kFew = 64;
  if (process.has_left || now < process.next_look_ms)
    return;
  const std::uint64_t crowd = 1 + running_.size() / kFew;
  process.next_look_ms = now + crowd * (kSoonMs << std::min(process.looks++, kMostDoublings));
  bool has_memory = false;  // without mappings it is about to end
  bool is_mapped = false;
  stream::for_each_mapping(process.pid, [&](const stream::MapsLine& map) {
    has_memory = true;
    is_mapped = is_mapped || map.path.find(kMemoryName) != std::string_view::npos;
  });
  const bool is_absent = has_memory && !is_mapped;
  process.has_left = is_absent && process.was_absent;
  process.was_absent = is_absent;
  if (is_absent)
    process.next_look_ms = now + kSoonMs;
  counts_.other_programs += process.has_left && !has_told_of(process) ? 1 : 0;
  look_for_strangers(process);
}

/// Whether a program without the library is one that `left_out` counts already.
bool Collector::has_told_of(Running& process) {
  const bool is_told = process.left_out_seen < process.left_out;
  process.left_out_seen += is_told ? 1 : 0;
  return is_told;
}

/// Finds children without the library.  A child of vfork(2) does not announce itself unless its
/// program does.
void Collector::look_for_strangers(Running& process) {
  if (!listener_.is_listening())
    return;  // a child may be waiting to be accepted
  std::set<pid_t> seen;
  for (const pid_t child : stream::children_of(process.pid)) {
    const bool is_running = std::any_of(running_.begin(), running_.end(),
                                        [&](const Running& other) { return other.pid == child; });
    const auto status = is_running ? std::nullopt : stream::status_of(child);
    if (!status || !status->has_memory)
      continue;
    seen.insert(child);
    if (process.strangers.contains(child) && strangers_.insert(child).second &&
        !has_told_of(process))
      ++counts_.other_programs;
  }
  process.strangers = std::move(seen);
}

/// Found threads may end unnoticed, if they block all signals or clone(2) started them.  Only we
/// change the state of their slots: nobody else claims a live slot, and no handler runs in an ended
/// thread.
void Collector::end_gone_threads(Running& process, const std::vector<pid_t>& tids) {
  for (std::uint32_t number = 0; number < process.slots.size(); ++number) {
    const Slot& slot = process.slots[number];
    Thread& thread = process.memory.thread(number);
    // A list that is read while threads end may lack a live thread, so we check the thread by its
    // id.
    if (slot.is_open && !std::ranges::binary_search(tids, slot.tid) &&
        load_published(thread.state) == kLive && stream::comm_of(process.pid, process.pid) &&
        !stream::comm_of(process.pid, slot.tid))
      publish(thread.state, static_cast<std::uint32_t>(kEnded));
  }
}

/// Reports unsampled threads to the process, so that one of its handlers starts to sample them.
/// Libraries or clone(2) started these threads, not pthread_create(3) calls of the program.  If the
/// table is full, counts them instead: the maximum at one time.  Threads that have just announced
/// their end are left out, because they may exist a little longer.
void Collector::ask_for_threads(Running& process) {
  std::set<pid_t> known;
  for (const Slot& slot : process.slots)
    if (slot.is_open)
      known.insert(slot.tid);
  const std::vector<pid_t> tids = stream::threads_of(process.pid);
  end_gone_threads(process, tids);
  const bool is_full = known.size() >= process.memory.header().max_threads;
  known.merge(std::exchange(process.just_ended, {}));
  Header& header = process.memory.live_header();
  if (is_full) {
    const auto has_none = [&](pid_t tid) { return !known.contains(tid); };
    process.without_slot =
        std::max<std::uint64_t>(process.without_slot, std::ranges::count_if(tids, has_none));
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
void Collector::count_blocking(Running& process) {
  for (Slot& slot : process.slots) {
    if (!slot.is_open || slot.is_blocking || slot.tail != slot.opened_at)
      continue;
    // A single hit may be within a call of pthread_create(3), or within the handler.
    const bool was_blocking =
        std::exchange(slot.was_blocking, has_blocked_signal(process.pid, slot.tid));
    slot.is_blocking = was_blocking && slot.was_blocking;
    counts_.threads_that_block += slot.is_blocking ? 1 : 0;
  }
}

void Collector::finish(Running& process) {
  drain(process);
  for (Slot& slot : process.slots)
    close_slot(process, slot);
  events_.on_process_end(process.pid);
}

ThreadOf Collector::thread_of(const Running& process, const Slot& slot) const {
  return {process.pid, slot.tid, slot.name};
}

std::string settings_text(const Settings& settings, const Listener& listener) {
  return fmt::format("{}=socket={},key={},hz={},clock={},stack={},ring={},follow={}",
                     kSettingsVariable, listener.socket_name(), listener.key(), settings.hz,
                     settings.clock == Clock::kWall ? "wall" : "cpu", settings.stack_bytes,
                     settings.ring_bytes, settings.follows_forks ? 1 : 0);
}

}  // namespace pe::inprocess

// Takes the samples out of the processes that sample themselves, while they run.
//
//     Collector collector(events, {.names = {}, .tids = {}});
//     start the command with LD_PRELOAD=libsampler_preload.so and PE_SAMPLER=settings_text(...)
//     for (;;) { poll(collector.fd(), collector.wait_ms()); collector.pass(); }
//
// Processes are untrusted.  What they have written is copied and checked, what contradicts itself
// is counted as damaged; of what they say, only that the samples of a process are its own is
// certain.
// SPDX-License-Identifier: MIT
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/byte_reader.h"
#include "base/fd.h"
#include "inprocess/listener.h"
#include "inprocess/sampler/layout.h"
#include "inprocess/sampler/settings.h"
#include "inprocess/sampler/shared_memory.h"

namespace pe::inprocess {

struct ProcessBegan {
  pid_t pid;         ///< as we see it
  pid_t parent_pid;  ///< as the process sees it; for what was forked, the pid it was forked from
  BeganAs began_as;  ///< kProgram: by exec, or the command itself; an earlier one of that pid ended
  Clock clock;
  std::uint32_t hz;
  std::uint64_t time_ns;     ///< CLOCK_MONOTONIC
  std::string_view command;  ///< hostile, at most 15 bytes
  /// Its /proc/PID/maps of that time, untrusted text: for processes that have ended before theirs
  /// could be read.  Whoever unwinds reads /proc/PID/maps, while there is one, for what is mapped
  /// later (dlopen).
  std::string_view maps;
};

struct ThreadOf {
  pid_t pid;
  pid_t tid;              ///< as we see it if the process is in our pid namespace
  std::string_view name;  ///< hostile, at most 15 bytes
};

struct CollectedSample {
  ThreadOf thread;
  std::uint64_t time_ns;  ///< CLOCK_MONOTONIC; rising within a thread, not between them
  std::uint32_t weight;   ///< periods of 1/hz that it stands for, at least 1
  TimerKind timer_kind;   ///< kProcess: whatever that says, it stands for a tick at least
  std::span<const std::uint64_t, kRegisters> registers;  ///< by DWARF number
  Bytes stack;                                           ///< from the stack pointer up
  bool is_cut;  ///< the stack goes on, or may go on, behind that
};

/// What the collector tells; views die with the call.
class Events {
 public:
  Events() = default;
  Events(const Events&) = delete;
  Events(Events&&) = delete;
  Events& operator=(const Events&) = delete;
  Events& operator=(Events&&) = delete;
  virtual ~Events() = default;

  virtual void on_process(const ProcessBegan& process) = 0;
  virtual void on_thread(const ThreadOf& thread, std::uint64_t time_ns) = 0;
  virtual void on_sample(const CollectedSample& sample) = 0;
  virtual void on_thread_end(const ThreadOf& thread) = 0;
  /// It has ended, or another program has begun in it.
  virtual void on_process_end(pid_t pid) = 0;
};

/// Which threads are wanted: those of any of these names or numbers; all if there are none.
struct ThreadChoice {
  std::set<std::string, std::less<>> names;
  std::set<pid_t> tids;
  [[nodiscard]] bool is_everything() const noexcept { return names.empty() && tids.empty(); }
};

/// For a closing line.
struct CollectorCounts {
  std::uint64_t processes = 0, threads = 0;
  std::uint64_t samples = 0;
  std::uint64_t weight = 0;        ///< of those; what is above `samples` are the timers' overruns
  std::uint64_t cut_samples = 0;   ///< with less of their stack than there is
  std::uint64_t cut_bytes = 0;     ///< what is missing, as far as that is known
  std::uint64_t lost_samples = 0;  ///< a ring was full
  std::uint64_t lost_weight = 0;
  std::uint64_t threads_without_room = 0;       ///< more threads than the table has slots
  std::uint64_t threads_before_reader = 0;      ///< those of ended threads had not been read yet
  std::uint64_t threads_without_variables = 0;  ///< of their own: begun by clone(2)
  std::uint64_t threads_without_timer = 0;      ///< the kernel refused one (ulimit -i)
  std::uint64_t threads_that_block = 0;         ///< SIGPROF, so that there are no samples of them
  std::uint64_t stopped_processes = 0;          ///< that use the process's timer themselves
  /// That have not loaded the library: processes went on as these, or began them.
  std::uint64_t other_programs = 0;
  std::uint64_t left_out = 0;          ///< those from which it was kept away, not among them
  std::uint64_t by_process_timer = 0;  ///< processes that have no others
  std::uint64_t damaged = 0;           ///< what contradicts itself
};

class Collector {
 public:
  /// Begins to listen.  `events` must outlive this.  Throws Error.
  Collector(Events& events, ThreadChoice choice);

  /// For settings_text().
  [[nodiscard]] const Listener& listener() const noexcept { return listener_; }
  /// From now on other processes are not taken in.
  void take_only(pid_t pid) noexcept { listener_.take_only(pid); }

  /// Readable when a process has begun or ended.
  [[nodiscard]] int fd() const noexcept { return listener_.fd(); }
  /// When pass() is due even if fd() is not readable: sooner, the fuller rings were last time.
  [[nodiscard]] int wait_ms() const noexcept { return wait_ms_; }
  /// Takes in what has come, and who has ended.
  void pass();
  /// False: processes wait that were not taken in for want of descriptors.
  [[nodiscard]] bool has_taken_all() const noexcept { return listener_.is_listening(); }

  [[nodiscard]] std::size_t running() const noexcept { return running_.size(); }
  [[nodiscard]] const CollectorCounts& counts() const noexcept { return counts_; }
  /// Of the threads that were chosen, those that there were none of so far.
  [[nodiscard]] const ThreadChoice& missed() const noexcept { return missed_; }
  /// What threads were called, of which the first kMostNames different ones are kept; hostile.
  [[nodiscard]] const std::set<std::string, std::less<>>& seen_names() const noexcept {
    return seen_names_;
  }
  static constexpr std::size_t kMostNames = 64;
  /// Processes that sent something else, each with the reason.
  [[nodiscard]] const std::map<std::string, std::uint64_t>& refused() const noexcept {
    return listener_.refused();
  }

 private:
  struct Slot {
    std::uint64_t tail = 0;
    std::uint64_t opened_at = 0;   ///< tail when its thread began
    std::uint64_t cleared_at = 0;  ///< tail when its ring was last given back
    std::uint64_t lost_samples = 0, lost_weight = 0, cut_bytes = 0;  ///< counted already
    pid_t tid = 0;
    std::string name;
    std::uint64_t named_ms = 0;  ///< when its name was looked up
    bool is_open = false;        ///< told of
    bool was_blocking = false;   ///< its signals, when that was looked at
    bool is_blocking = false;    ///< counted as that
    bool is_wanted = true;
  };
  struct Running {
    SharedMemory memory;
    pid_t pid;
    Fd ended;  ///< a pidfd, readable then; none on kernels before 5.3
    std::vector<Slot> slots;
    std::set<pid_t> just_ended = {};  ///< threads, since they were last looked at
    std::uint64_t looked_ms = 0;      ///< when its threads were last looked at in /proc
    std::uint64_t next_look_ms = 0;   ///< for another program in it
    std::uint64_t looks = 0;          ///< for that, since there was a sample
    bool was_absent = false;          ///< our memory, when it was looked for
    std::set<pid_t> strangers = {};   ///< children without the library, seen then
    bool has_left = false;            ///< there is one
    std::uint64_t without_room = 0, without_timer = 0;
    std::uint64_t before_reader = 0, without_variables = 0;
    std::uint64_t without_slot = 0;   ///< most threads that had none at one time
    std::uint64_t left_out = 0;       ///< that it has told of
    std::uint64_t left_out_seen = 0;  ///< of them
    bool has_stopped = false;
    TimerKind timer_kind = TimerKind::kThread;
  };

  bool pass_once();
  void begin(pid_t pid, Fd fd);
  void drain(Running& process);
  void look_at_timers(Running& process);
  void drain_slot(Running& process, std::uint32_t number);
  static void free_slot(Running& process, std::uint32_t number);
  static bool has_slot(const Running& process, pid_t tid);
  void open_slot(const Running& process, Slot& slot, Thread& thread);
  void name_slot(const Running& process, Slot& slot, Thread& thread);
  void note_name(const Slot& slot);
  void take_records(const Running& process, const Slot& slot);
  void close_slot(const Running& process, Slot& slot);
  void count_losses(Running& process);
  void look_at_threads(Running& process);
  static void end_gone_threads(Running& process, const std::vector<pid_t>& tids);
  void ask_for_threads(Running& process);
  void count_blocking(Running& process);
  void look_for_other_program(Running& process);
  static bool has_told_of(Running& process);
  void look_for_strangers(Running& process);
  void finish(Running& process);
  [[nodiscard]] ThreadOf thread_of(const Running& process, const Slot& slot) const;
  static int safe_wait_ms(const Header& header);
  void pace();

  Events& events_;
  ThreadChoice choice_, missed_;
  std::set<std::string, std::less<>> seen_names_;
  Listener listener_;
  std::vector<Running> running_;
  std::set<pid_t> strangers_;     ///< counted as other programs
  std::vector<std::byte> bytes_;  ///< of the ring that is being read
  CollectorCounts counts_;
  std::uint64_t fullest_percent_ = 0;  ///< of the rings that were read in this pass
  int wait_ms_;
};

/// What the library is to be told in the environment: "PE_SAMPLER=...".
std::string settings_text(const Settings& settings, const Listener& listener);

}  // namespace pe::inprocess

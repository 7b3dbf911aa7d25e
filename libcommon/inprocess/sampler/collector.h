// Collects the samples of processes that sample themselves, while they run.
//
//     Collector collector(events, {.names = {}, .tids = {}});
//     start the command with LD_PRELOAD=libsampler_preload.so and PE_SAMPLER=settings_text(...)
//     for (;;) { poll(collector.fd(), collector.wait_ms()); collector.pass(); }
//
// Processes are untrusted.  The collector copies and checks their data, and counts contradictions
// as damaged.  It guarantees only that the samples of a process come from that process.
// SPDX-License-Identifier: MIT
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/fd.h"
#include "inprocess/listener.h"
#include "inprocess/sampler/layout.h"
#include "inprocess/sampler/settings.h"
#include "inprocess/sampler/shared_memory.h"
#include "stream/records/sample.h"

namespace pe::inprocess {

struct ProcessBegan {
  pid_t pid;                 ///< in our pid namespace
  pid_t parent_pid;          ///< in the process's pid namespace; of a fork, the process that forked
  BeganAs began_as;          ///< kProgram: by exec, or the command; replaces the pid's earlier one
  std::uint64_t time_ns;     ///< CLOCK_MONOTONIC
  std::string_view command;  ///< untrusted, at most 15 bytes
  /// Untrusted text: /proc/PID/maps at that time.  Serves processes that end before their file can
  /// be read.  Unwinders read the file, while it exists, for later mappings (dlopen).
  std::string_view maps;
  std::uint64_t memory_inode;  ///< in /proc/PID/maps, as long as it is the same program
};

struct ThreadOf {
  pid_t pid;
  pid_t tid;              ///< in our pid namespace, if the process is in that
  std::string_view name;  ///< untrusted, at most 15 bytes
};

/// The collector's callbacks.  Views are valid only during the call.
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
  /// A sample of sample_attr(); `period` is the time that it represents.  Times ascend within a
  /// thread only.
  virtual void on_sample(const ThreadOf& thread, const stream::Sample& sample) = 0;
  virtual void on_thread_end(const ThreadOf& thread) = 0;
  /// The process has ended, or has started another program.
  virtual void on_process_end(pid_t pid) = 0;
};

/// The wanted threads: those with one of these names or thread ids; all if both sets are empty.
struct ThreadChoice {
  std::set<std::string, std::less<>> names;
  std::set<pid_t> tids;
  [[nodiscard]] bool is_everything() const noexcept { return names.empty() && tids.empty(); }
};

/// Counts for a closing line.
struct CollectorCounts {
  std::uint64_t processes = 0, threads = 0;
  std::uint64_t samples = 0;
  std::uint64_t weight = 0;        ///< of `samples`; the excess over their number is timer overruns
  std::uint64_t lost_samples = 0;  ///< dropped because a ring was full
  std::uint64_t lost_weight = 0;
  std::uint64_t threads_without_room = 0;       ///< threads without a slot: the table was full
  std::uint64_t threads_before_reader = 0;      ///< ... or only had slots that were not read yet
  std::uint64_t threads_without_variables = 0;  ///< clone(2) gave them no thread-local storage
  std::uint64_t threads_without_timer = 0;      ///< the kernel refused a timer (ulimit -i)
  std::uint64_t threads_that_block = 0;         ///< they block SIGPROF, and so have no samples
  std::uint64_t stopped_processes = 0;          ///< they use ITIMER_PROF themselves
  /// Programs without the library that sampled processes have executed or started.
  std::uint64_t other_programs = 0;
  std::uint64_t left_out = 0;          ///< kept free of the library; not in other_programs
  std::uint64_t by_process_timer = 0;  ///< processes that have only ITIMER_PROF
  std::uint64_t damaged = 0;           ///< pieces of data that contradict themselves
};

class Collector {
 public:
  /// Starts to listen.  `events` must outlive this.  Throws Error.
  Collector(Events& events, ThreadChoice choice);

  /// For settings_text().
  [[nodiscard]] const Listener& listener() const noexcept { return listener_; }
  /// From now on rejects other processes.
  void take_only(pid_t pid) noexcept { listener_.take_only(pid); }

  /// Readable when a process has started or ended.
  [[nodiscard]] int fd() const noexcept { return listener_.fd(); }
  /// The time until pass() is due even if fd() is not readable.  The fuller the rings were, the
  /// shorter.
  [[nodiscard]] int wait_ms() const noexcept { return wait_ms_; }
  /// Accepts new processes, reads all samples, and removes ended processes.
  void pass();
  /// False if processes wait to be accepted, for lack of descriptors.
  [[nodiscard]] bool has_taken_all() const noexcept { return listener_.is_listening(); }

  [[nodiscard]] std::size_t running() const noexcept { return running_.size(); }
  [[nodiscard]] const CollectorCounts& counts() const noexcept { return counts_; }
  /// The chosen names and thread ids of which there was no thread so far.
  [[nodiscard]] const ThreadChoice& missed() const noexcept { return missed_; }
  /// The first kMostNames different names of threads, if threads were chosen; untrusted.
  [[nodiscard]] const std::set<std::string, std::less<>>& seen_names() const noexcept {
    return seen_names_;
  }
  static constexpr std::size_t kMostNames = 64;
  /// The number of rejected processes, by reason.
  [[nodiscard]] const std::map<std::string, std::uint64_t>& refused() const noexcept {
    return listener_.refused();
  }

 private:
  struct Slot {
    std::uint64_t tail = 0;
    std::uint64_t opened_at = 0;                      ///< tail when its thread started
    std::uint64_t cleared_at = 0;                     ///< tail when its ring was last given back
    std::uint64_t lost_samples = 0, lost_weight = 0;  ///< counted already
    pid_t tid = 0;
    std::string name;
    std::uint64_t named_ms = 0;  ///< when its name was looked up
    bool is_open = false;        ///< its thread is known to `events_`
    bool was_blocking = false;   ///< its thread blocked SIGPROF at the last check
    bool is_blocking = false;    ///< its thread is in threads_that_block
    bool is_wanted = true;
  };
  struct Running {
    SharedMemory memory;
    pid_t pid;
    Fd ended;  ///< a pidfd, readable when it has ended; none before Linux 5.3
    std::vector<Slot> slots;
    std::set<pid_t> just_ended = {};  ///< threads, since the last scan
    std::uint64_t looked_ms = 0;      ///< when its threads were last scanned in /proc
    std::uint64_t next_look_ms = 0;   ///< when to check next for another program in it
    std::uint64_t looks = 0;          ///< number of such checks since the last sample
    bool was_absent = false;          ///< our memory was not mapped at the last check
    std::set<pid_t> strangers = {};   ///< children without the library at the last check
    bool has_left = false;            ///< another program is in it
    std::uint64_t without_room = 0, without_timer = 0;
    std::uint64_t before_reader = 0, without_variables = 0;
    std::uint64_t without_slot = 0;   ///< maximum number of threads without a slot at one time
    std::uint64_t left_out = 0;       ///< programs that it has reported as left out
    std::uint64_t left_out_seen = 0;  ///< number of those that we have found
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
  bool take_record(const Running& process, const Slot& slot, const stream::Record& record);
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
  std::set<pid_t> strangers_;     ///< children without the library that were counted once
  std::vector<std::byte> bytes_;  ///< the part of a ring that is being read
  CollectorCounts counts_;
  std::uint64_t fullest_percent_ = 0;  ///< of the rings in this pass
  int wait_ms_;
};

/// Returns the environment variable that configures the library: "PE_SAMPLER=...".
std::string settings_text(const Settings& settings, const Listener& listener);

}  // namespace pe::inprocess

// A process that samples itself: finds its threads, reads their rings, and counts its losses.
//
// The process is untrusted.  Its data are copied and checked; contradictions are counted as
// damaged.  Its samples get the ids of the process and of the slot's thread, whatever their records
// contain.
// SPDX-License-Identifier: MIT
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/fd.h"
#include "recording/inprocess/listener.h"
#include "recording/signal/layout.h"
#include "recording/signal/shared_memory.h"
#include "recording/stream/engine_records.h"

namespace pe::recording {

/// Counts for a closing line.
struct CollectorCounts {
  std::uint64_t processes = 0, threads = 0;
  std::uint64_t samples = 0;
  std::uint64_t weight = 0;      ///< of `samples`; the excess over their number is timer overruns
  std::uint64_t sampled_ns = 0;  ///< the time that `samples` represent
  std::uint64_t sampled_processes = 0;  ///< processes that have a sample
  std::uint64_t lost_samples = 0;       ///< dropped because a ring was full
  std::uint64_t lost_weight = 0;
  std::uint64_t threads_without_room = 0;       ///< threads without a slot: the table was full
  std::uint64_t threads_before_reader = 0;      ///< ... or only had slots that were not read yet
  std::uint64_t threads_without_variables = 0;  ///< clone(2) gave them no thread-local storage
  std::uint64_t threads_without_timer = 0;      ///< the kernel refused a timer (ulimit -i)
  std::uint64_t threads_that_block = 0;         ///< they block SIGPROF, and so have no samples
  std::uint64_t threads_without_stack = 0;      ///< their alternate stack has no room for a handler
  std::uint64_t stopped_processes = 0;          ///< they use ITIMER_PROF themselves
  std::uint64_t stopped_by_filter = 0;          ///< seccomp(2) forbids the return from handlers
  std::uint64_t stopped_by_stack = 0;  ///< ITIMER_PROF would interrupt a thread without room
  std::uint64_t closed_processes = 0;  ///< seccomp(2) forbids calls of the library
  std::uint64_t uncopied_samples = 0;  ///< without a stack, or an interpreter's
  /// Programs without the library that sampled processes have executed or started.
  std::uint64_t other_programs = 0;
  std::uint64_t left_out = 0;          ///< kept free of the library; not in other_programs
  std::uint64_t by_process_timer = 0;  ///< processes that have only ITIMER_PROF
  std::uint64_t damaged = 0;           ///< pieces of data that contradict themselves
};

/// The wanted threads: those with one of these names or thread ids; all if both sets are empty.
struct ThreadChoice {
  std::set<std::string, std::less<>> names;
  std::set<pid_t> tids;
  [[nodiscard]] bool is_everything() const noexcept { return names.empty() && tids.empty(); }
};

/// Chooses the threads to sample, and knows which of the wanted ones were seen.
class ThreadFilter {
 public:
  explicit ThreadFilter(ThreadChoice choice) : choice_(std::move(choice)), missed_(choice_) {}

  [[nodiscard]] bool wants_everything() const noexcept { return choice_.is_everything(); }
  /// Returns whether a thread is wanted.
  bool wants(pid_t tid, const std::string& name);
  /// The chosen names and thread ids of which there was no thread so far.
  [[nodiscard]] const ThreadChoice& missed() const noexcept { return missed_; }
  /// The first 64 different names of threads, if threads were chosen; untrusted.
  [[nodiscard]] const std::set<std::string, std::less<>>& seen_names() const noexcept {
    return seen_names_;
  }

 private:
  static constexpr std::size_t kMostNames = 64;

  ThreadChoice choice_, missed_;
  std::set<std::string, std::less<>> seen_names_;
};

/// The data that all processes of a collector share.
struct Collected {
  EngineRecords& records;
  ThreadFilter filter;
  CollectorCounts counts = {};
  std::uint64_t fullest_percent = 0;    ///< of the rings in this pass
  std::set<pid_t> strangers = {};       ///< children without the library that were counted once
  std::vector<std::byte> bytes = {};    ///< the part of a ring that is being read
  languages::ScriptFrames script = {};  ///< of the next sample, if it has frames
};

class SampledProcess {
 public:
  /// `ended` is the result of Listener::watch_end().  `collected` must outlive this.
  SampledProcess(inprocess::SharedMemory memory, pid_t pid, Fd ended, Collected& collected);

  [[nodiscard]] pid_t pid() const noexcept { return pid_; }
  /// A checked copy of the header at the start.
  [[nodiscard]] const inprocess::Header& header() const noexcept { return memory_.header(); }
  [[nodiscard]] bool has_ended() const { return inprocess::has_process_ended(pid_, ended_); }

  /// Writes that the process starts, or starts another program if it had one before.
  void begin(bool had_program);
  /// From now on handlers read the stacks in this interpreter, if it is not null.
  void set_script(const languages::ScriptProcess* script);
  /// Reads new samples, and frees the slots of ended threads.
  void drain();
  /// Scans the threads, if it is time: finds those that the process does not know, have ended, or
  /// block SIGPROF.
  void check_threads();
  /// Checks whether another program runs in the process.  Returns false if no check is due yet.
  /// `running` is the number of sampled processes.
  bool find_other_program(std::size_t running);
  /// Counts children without the library.
  void find_strangers(const std::function<bool(pid_t)>& is_sampled);
  /// Reads the last samples, and writes the end of all threads.  The process itself may have
  /// started another program.
  void finish();
  /// The time of the last known event in it.
  [[nodiscard]] std::uint64_t last_ns() const noexcept { return last_ns_; }

 private:
  struct Slot {
    std::uint64_t tail = 0;
    std::uint64_t opened_at = 0;                      ///< tail when its thread started
    std::uint64_t cleared_at = 0;                     ///< tail when its ring was last given back
    std::uint64_t lost_samples = 0, lost_weight = 0;  ///< counted already
    std::uint64_t uncopied_samples = 0;               ///< the same
    pid_t tid = 0;
    std::string name;
    std::uint64_t named_ms = 0;  ///< when its name was looked up
    bool is_open = false;        ///< its thread has been reported
    bool was_blocking = false;   ///< its thread blocked SIGPROF at the last check
    bool is_blocking = false;    ///< its thread is in threads_that_block
    bool is_wanted = true;
  };

  void check_timers();
  void drain_slot(std::uint32_t number);
  void free_slot(std::uint32_t number);
  [[nodiscard]] bool has_slot(pid_t tid) const;
  void open_slot(Slot& slot, inprocess::Thread& thread);
  void name_slot(Slot& slot, inprocess::Thread& thread);
  void take_records(const Slot& slot);
  bool take_record(const Slot& slot, const stream::Record& record);
  bool take_script(const stream::Record& record);
  void close_slot(Slot& slot);
  void count_losses();
  void end_gone_threads(const std::vector<pid_t>& tids);
  void ask_for_threads();
  void count_blocking();
  void count_other_program();
  void write_fork(pid_t tid, pid_t parent, std::uint64_t time_ns);

  inprocess::SharedMemory memory_;
  pid_t pid_;
  Fd ended_;
  Collected* collected_;
  std::vector<Slot> slots_;
  std::uint64_t last_ns_ = 0;
  bool has_samples_ = false;
  std::set<pid_t> just_ended_;      ///< threads, since the last scan
  std::uint64_t next_scan_ns_ = 0;  ///< when its threads are next looked for in /proc
  std::size_t next_checked_ = 0;    ///< the slot with which count_blocking() continues
  std::uint64_t next_look_ms_;      ///< when to check next for another program in it
  std::uint64_t looks_ = 0;         ///< number of such checks since the last sample
  bool was_absent_ = false;         ///< our memory was not mapped at the last check
  std::set<pid_t> strangers_;       ///< children without the library at the last check
  bool has_left_ = false;           ///< another program is in it
  std::uint64_t without_room_ = 0, without_timer_ = 0;
  std::uint64_t before_reader_ = 0, without_variables_ = 0;
  std::uint64_t without_slot_ = 0;   ///< maximum number of threads without a slot at one time
  std::uint64_t left_out_ = 0;       ///< programs that it has reported as left out
  std::uint64_t left_out_seen_ = 0;  ///< number of those that we have found
  std::uint64_t without_stack_ = 0;
  bool has_stopped_ = false, is_closed_ = false;
  inprocess::TimerKind timer_kind_ = inprocess::TimerKind::kThread;
};

}  // namespace pe::recording

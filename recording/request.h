// The recording that a tool requests, and its target.
// SPDX-License-Identifier: MIT
#pragma once

#include <sys/types.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "recording/inprocess/runtime/tick.h"
#include "recording/probes/weight.h"
#include "recording/signal/layout.h"

namespace pe::recording {

/// The method that finds call chains.
enum class CallGraph {
  kAuto,           ///< kDwarf where the kernel gives registers and stacks, else kFramePointers
  kDwarf,          ///< we use copies of the stack and call frame information
  kFramePointers,  ///< the kernel follows frame pointers
  kNone,
};

/// The parts that sample threads and walk their stacks.
enum class Engine {
  kAuto,    ///< the first that works, in an order that depends on what is recorded
  kBest,    ///< likewise, but rather kBpf, which takes longer to start
  kPerf,    ///< the kernel's counters sample; we walk the kernel's copies of stacks
  kBpf,     ///< the kernel's counters sample; an eBPF program walks stacks in the kernel
  kSignal,  ///< a library in the target samples; we walk its copies of stacks
  kPtrace,  ///< we stop threads, copy their stacks and walk the copies
};

using inprocess::Clock;

/// The highest rate at which threads are stopped.
inline constexpr std::uint64_t kMostHz = 10'000;
/// Returns the highest rate of an engine that does not use counters.
constexpr std::uint64_t most_hz_of(Engine engine) noexcept {
  return engine == Engine::kSignal ? inprocess::kMostHz : kMostHz;
}

/// The default rates.  A command is often short, so it is sampled more often than what runs
/// already.  Neither rate is in step with work that runs every 10 ms or 1 ms.
inline constexpr std::uint64_t kDefaultHz = 99, kDefaultCommandHz = 997;

/// The part of each CPU that walks of stacks in the kernel may take.
inline constexpr std::uint32_t kDefaultBudgetPercent = 5;

/// The largest stack copy that the kernel can make: the size of a record has 16 bits.
inline constexpr std::uint32_t kMaxStackBytes = 65'528;

/// The target: single processes and threads, or a control group, or everything.
struct Target {
  std::vector<pid_t> processes = {};    ///< all their threads, and processes that they start
  std::vector<pid_t> threads = {};      ///< only these threads
  std::vector<pid_t> found = {};        ///< those of `processes` that nobody named: they may end
  std::vector<std::string> names = {};  ///< of processes; tidy() finds and removes them
  bool with_children = false;           ///< also processes that they have started before
  std::string cgroup = {};  ///< a path, absolute or below the cgroup file system, or empty
  bool is_everything = false;
  std::vector<int> cpus = {};  ///< records only on these; empty: all that are online
  bool is_command = false;     ///< processes[0] is a command, held before its exec

  [[nodiscard]] bool may_end(pid_t pid) const {
    return std::find(found.begin(), found.end(), pid) != found.end();
  }
  /// Returns whether the target reaches beyond single processes.
  [[nodiscard]] bool is_wide() const noexcept { return is_everything || !cgroup.empty(); }
  /// Returns whether the target is only whole processes, or a command.
  [[nodiscard]] bool is_of_processes() const noexcept { return !is_wide() && threads.empty(); }
};

/// A function whose calls are recorded: probes on its entry, and on all instructions that end it.
struct SpanProbes {
  std::string function;  ///< as the user wrote it
  Probe entry, exits;
};

/// The settings of a recording.
struct Request {
  std::vector<std::string> events = {};      ///< empty: cycles, or cpu-clock where there is no PMU
  std::map<std::string, Probe> probes = {};  ///< the events that are probes, by name
  std::vector<SpanProbes> spans = {};        ///< recorded beside the events
  std::map<std::string, EventWeight> weights = {};      ///< by event: a sample counts its value
  std::map<std::string, std::string> filters = {};      ///< by tracepoint: the kernel's filter
  std::map<std::string, std::string> shown_names = {};  ///< by event, if it has another name
  std::set<std::string> each_pass = {};  ///< the events that have a sample each time they happen
  std::optional<std::uint64_t> max_hits = {};  ///< a second; more end the recording
  std::uint64_t frequency_hz = kDefaultHz;
  bool frequency_was_given = false;          ///< else every pass of a tracepoint is recorded
  std::optional<std::uint64_t> period = {};  ///< instead of a frequency
  /// The part of each CPU that the samples of Engine::kBpf may take; 0: no limit.
  std::uint32_t budget_percent = kDefaultBudgetPercent;
  CallGraph call_graph = CallGraph::kAuto;
  Engine engine = Engine::kPerf;
  Clock clock = Clock::kCpu;                      ///< used by Engine::kSignal and kPtrace
  std::vector<std::string> thread_choice = {};    ///< of kSignal: thread names or ids; empty: all
  std::optional<std::uint32_t> stack_bytes = {};  ///< of each copy; nullopt: as the rings allow
  /// Of samples of a clock beside switches: they are rarer, and their stacks change at once.
  std::optional<std::uint32_t> clock_stack_bytes = {};
  bool may_continue = true;          ///< continues stacks that are deeper than their copy
  bool keep_stacks = false;          ///< writes stacks to the stream, without unwinding
  bool may_keep_binaries = true;     ///< keeps binaries in ~/.debug that would be gone later
  bool trusts_all_binaries = false;  ///< kept files of containers name other recordings, too
  bool user_only = false;
  bool kernel_only = false;
  /// Also records when threads start and stop running (PERF_RECORD_SWITCH).  These records, and
  /// those about processes, go to separate rings, so a lack of room for samples does not affect
  /// them.
  bool with_switches = false;
  /// Also records when threads are woken, by whomever, on all CPUs (sched:sched_wakeup), in the
  /// same rings.
  bool with_wakeups = false;
  bool with_raw_data = false;  ///< also records a tracepoint's own fields
  /// Each record wakes the thread that polls its ring.  Such a ring contains no samples, only
  /// records such as new mappings, which must be known at once.
  bool wakes_at_once = false;
  /// The event counts nothing, and its counters are those of CPUs: the kernel stops and starts a
  /// thread's counters with each switch.  The rings have the records of all processes.
  bool of_cpus_only = false;
  /// The size of each CPU's ring, a power of two; nullopt: as large as the lock limit allows.
  std::optional<std::size_t> ring_pages = {};
};

}  // namespace pe::recording

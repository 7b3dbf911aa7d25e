// What a tool wants to have recorded, and of whom.
// SPDX-License-Identifier: MIT
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "inprocess/sampler/layout.h"

namespace pe::record {

/// How call chains are found.
enum class CallGraph {
  kAuto,           ///< kDwarf where the kernel gives registers and stacks, else kFramePointers
  kDwarf,          ///< from copies of the stack, by call frame information
  kFramePointers,  ///< by the kernel
  kNone,
};

/// Who takes samples, and who walks their stacks.
enum class Engine {
  kAuto,    ///< the first of kPerf, kSignal, kPtrace that works
  kPerf,    ///< the kernel's counters; we, copies that the kernel makes of stacks
  kBpf,     ///< the kernel's counters; the kernel, by an eBPF program
  kSignal,  ///< the target, by a library in it; we, copies that this makes of stacks
  kPtrace,  ///< we stop threads; we, copies that we make of stacks
};

/// Which time samples are spread over, where it is not an event's.
enum class Clock {
  kCpu,   ///< that a thread runs
  kWall,  ///< all, also that it sleeps
};

/// The highest rate at which threads are stopped.
inline constexpr std::uint64_t kMostHz = 10'000;
/// The highest that is meant for an engine other than those of counters.
constexpr std::uint64_t most_hz_of(Engine engine) noexcept {
  return engine == Engine::kSignal ? inprocess::kMostHz : kMostHz;
}

/// The most of a stack that the kernel can be asked for: the size of a record has 16 bits.
inline constexpr std::uint32_t kMaxStackBytes = 65'528;

/// Whom to record: one of single processes and threads, a control group, or everything.
struct Target {
  std::vector<pid_t> processes = {};    ///< all their threads, and what they start
  std::vector<pid_t> threads = {};      ///< just these
  std::vector<std::string> names = {};  ///< of processes, until tidy() has found them
  bool with_children = false;           ///< of the processes, those that they have started before
  std::string cgroup = {};  ///< a path, absolute or below the cgroup file system, or empty
  bool is_everything = false;
  std::vector<int> cpus = {};  ///< only while it runs on these; empty: all that are online
  bool is_command = false;     ///< processes[0] is held before its exec

  /// Does it reach beyond single processes?
  [[nodiscard]] bool is_wide() const noexcept { return is_everything || !cgroup.empty(); }
  /// Is it only whole processes, or a command?
  [[nodiscard]] bool is_of_processes() const noexcept { return !is_wide() && threads.empty(); }
};

/// What to record.
struct Request {
  std::vector<std::string> events = {};  ///< empty: cycles, or cpu-clock where there is no PMU
  std::uint64_t frequency_hz = 99;
  bool frequency_was_given = false;          ///< else a tracepoint's every pass is taken
  std::optional<std::uint64_t> period = {};  ///< instead of a frequency
  CallGraph call_graph = CallGraph::kAuto;
  Engine engine = Engine::kPerf;
  Clock clock = Clock::kCpu;                      ///< of Engine::kSignal and kPtrace
  std::vector<std::string> thread_choice = {};    ///< of kSignal: names, or numbers; empty: all
  std::optional<std::uint32_t> stack_bytes = {};  ///< of each copy; nullopt: as the rings allow
  bool may_continue = true;                       ///< stacks that are deeper than their copy
  bool keep_stacks = false;                       ///< in the stream, instead of unwinding them
  bool may_keep_binaries = true;                  ///< in ~/.debug, those that would be gone later
  bool user_only = false;
  bool kernel_only = false;
  /// Also when threads begin and cease to run (PERF_RECORD_SWITCH), and with that what becomes of
  /// processes, in rings of their own: that samples find no room does not touch these.
  bool with_switches = false;
  bool with_raw_data = false;  ///< what a tracepoint tells besides
  /// Each record wakes who polls its ring: there are no samples in it, and what else there is, new
  /// mappings, has to be known at once.
  bool wakes_at_once = false;
  /// Of each CPU's ring, a power of two; nullopt: what the lock limit allows.
  std::optional<std::size_t> ring_pages = {};
};

}  // namespace pe::record

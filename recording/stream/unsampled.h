// Computes the CPU time that no sample represents.
//
// A clock's counter of a thread stops when the thread leaves its CPU.  It continues with the rest
// of its period when the thread is back.  The time between, in which the kernel switches and stops
// the counter itself, is not sampled.  With 100,000 switches a second, that is a third of all time
// (measured, Linux 6.18 in a virtual machine).  The counter's own value is also wrong, because it
// includes a part of that time.  A thread that runs for less than a period has no sample at all.  A
// counter of a whole CPU samples both.  It misses the time in which a host held a virtual machine's
// CPU, whose timer then fires once for many periods.  If a timer is due while interrupts are off,
// as when a thread wakes another and then waits, it fires later, perhaps in the idle task.
// SPDX-License-Identifier: MIT
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "recording/request.h"

namespace pe::recording {

/// How a recording's clock samples CPU time.
struct SampledClock {
  enum class Kind : std::uint8_t {
    kOfThreads,  ///< a counter of each thread
    kOfCpus,     ///< counters of whole CPUs
    kOfTicks,    ///< a timer of each thread of programs with our library; it expires at ticks
    kOfStops,    ///< we stop each thread, if we have a CPU then
  };
  std::uint64_t period_ns = 1;  ///< from one sample to the next
  Kind kind = Kind::kOfThreads;
};

/// The time that all samples of a recording represent, including lost ones, which the closing line
/// counts separately.
struct SampledTime {
  SampledClock clock;
  std::uint64_t ns = 0;
  std::uint64_t programs_without = 0;  ///< programs and forked processes without samples, if known
  std::uint64_t stolen_ns = 0;         ///< TargetTime::stolen_ns()
  std::uint64_t cpus_ns = 0;           ///< the time of all sampled CPUs; 0: unknown, or not of CPUs
  std::uint64_t walked_ns = 0;  ///< BpfEngine::walked_ns(): the kernel's walks of these samples
};

/// The CPU time of threads, of processes, and of the children that these have waited for, as the
/// scheduler counts it (thread_state.h).  It omits children that still run, unless they are a
/// command's, and children that nobody waited for.  So it never exceeds the true time.
class TargetTime {
 public:
  /// Measures the processes and threads that `target` lists, from now on.
  explicit TargetTime(const Target& target);
  /// Reads the times, if 200 times the CPU time of the last reading has passed: for a process,
  /// the kernel adds up the times of all its threads.  If a process ends, its time last read
  /// counts.
  void look();
  /// Does the same at the end.  For a command, it also reads the time of descendants that still
  /// run.
  void check_last();
  /// Returns the time used up to the last reading; all time of a command that has been
  /// waited for.
  [[nodiscard]] std::uint64_t used_ns() const;
  /// Returns the stolen_cpu_ns() between the constructor and check_last().
  [[nodiscard]] std::uint64_t stolen_ns() const { return stolen_ns_; }

 private:
  enum class Kind : std::uint8_t {
    kThread,
    kProcess,
    kWithChildren,  ///< all children that it waits for are recorded
  };
  struct Task {
    pid_t id;
    Kind kind;
    std::uint64_t first_ns, last_ns;
  };
  static std::optional<std::uint64_t> time_of(const Task& task);
  void add(pid_t id, Kind kind);
  void read();

  std::vector<Task> tasks_;
  std::uint64_t next_look_ns_ = 0;
  std::uint64_t descendants_ns_ = 0;
  std::uint64_t stolen_before_ns_ = 0, stolen_ns_ = 0;
  std::uint64_t waited_for_before_ns_ = 0;  ///< of children before the command
  bool is_command_;
};

/// Returns "2.31 of 2.33 s CPU time without samples …: <fix>" if that exceeds chance, and the
/// partial last periods of some threads; otherwise empty.  `used_ns` is TargetTime::used_ns().
std::string describe_unsampled(const SampledTime& sampled, std::uint64_t used_ns);

}  // namespace pe::recording

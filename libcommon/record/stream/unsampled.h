// CPU time that no sample stands for.
//
// A clock's counter of a thread stops when the thread leaves its CPU, and goes on with the rest of
// its period when the thread is back.  Of the time between, in which the kernel switches and stops
// the counter itself, nothing is sampled: with 100,000 switches a second that is a third of all
// (measured, Linux 6.18 in a virtual machine).  Neither is the counter's own value true, for it
// includes a part of that.  A thread that runs for less than a period has no sample at all.
// A counter of a whole CPU samples both; it misses only the time in which a host held a virtual
// machine's CPU, whose timer then fires once for many periods.
// SPDX-License-Identifier: MIT
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "record/request.h"

namespace pe::record {

/// How a recording's clock samples CPU time.
struct SampledClock {
  enum class Kind : std::uint8_t {
    kOfThreads,  ///< a counter of each thread
    kOfCpus,     ///< counters of whole CPUs
    kOfTicks,    ///< a timer of each thread of programs with our library; it expires at ticks
  };
  std::uint64_t period_ns = 1;  ///< from one sample to the next
  Kind kind = Kind::kOfThreads;
};

/// What all samples of a recording represent; also lost ones, which the closing line counts apart.
struct SampledTime {
  SampledClock clock;
  std::uint64_t ns = 0;
  std::uint64_t programs_without = 0;  ///< programs and forked processes without samples, if known
  std::uint64_t stolen_ns = 0;         ///< TargetTime::stolen_ns()
};

/// The CPU time of threads, of processes, and of the children that these have waited for, as the
/// scheduler counts it (/proc/PID/schedstat).  Children that still run are left out, unless they
/// are of a command, and others that nobody waited for: it is never more than the true time.
class TargetTime {
 public:
  /// Of what `target` lists, from now on.
  explicit TargetTime(const Target& target);
  /// Reads it; of a process that ends, what it had at the last call is known later.
  void look();
  /// The same at the end; of a command, also that of its descendants that still run.
  void look_last();
  /// Up to the last call of these; of a command that has ended and been waited for, all.
  [[nodiscard]] std::uint64_t used_ns() const;
  /// stolen_cpu_ns() of the time from the constructor to look_last().
  [[nodiscard]] std::uint64_t stolen_ns() const { return stolen_ns_; }

 private:
  enum class Kind : std::uint8_t {
    kThread,
    kProcess,
    kWithChildren,  ///< all that it waits for are recorded
  };
  struct Task {
    pid_t id;
    Kind kind;
    std::uint64_t first_ns, last_ns;
  };
  static std::optional<std::uint64_t> time_of(const Task& task);
  void add(pid_t id, Kind kind);

  std::vector<Task> tasks_;
  std::uint64_t descendants_ns_ = 0;
  std::uint64_t stolen_before_ns_ = 0, stolen_ns_ = 0;
  bool is_command_;
};

/// "2.31 of 2.33 s CPU time without samples …" if that is more than the ends of some threads, or
/// than chance; otherwise empty.  `used_ns` is TargetTime::used_ns().
std::string describe_unsampled(const SampledTime& sampled, std::uint64_t used_ns);

}  // namespace pe::record

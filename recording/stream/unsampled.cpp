// SPDX-License-Identifier: MIT
#include "recording/stream/unsampled.h"

#include <fmt/format.h>
#include <algorithm>
#include <cmath>

#include "base/clock.h"
#include "recording/thread_state.h"
#include "stream/proc/maps.h"

namespace pe::recording {

void TargetTime::add(pid_t id, Kind kind) {
  Task task{id, kind, 0, 0};
  task.first_ns = task.last_ns = time_of(task).value_or(0);
  tasks_.push_back(task);
}

TargetTime::TargetTime(const Target& target)
    : stolen_before_ns_(stolen_cpu_ns()),
      // A shell that has run other commands may have become this process by execve(2).
      waited_for_before_ns_(ended_children_cpu_ns()),
      is_command_(target.is_command) {
  // Earlier children are not recorded, but their time counts once a process has waited for them.
  for (const pid_t pid : target.processes)
    add(pid, stream::children_of(pid).empty() ? Kind::kWithChildren : Kind::kProcess);
  for (const pid_t tid : target.threads)
    add(tid, Kind::kThread);
}

std::optional<std::uint64_t> TargetTime::time_of(const Task& task) {
  if (task.kind == Kind::kThread)
    return thread_cpu_ns(task.id);
  const auto own_ns = process_cpu_ns(task.id);
  if (!own_ns || task.kind == Kind::kProcess)
    return own_ns;
  return *own_ns + children_cpu_ns(task.id);
}

void TargetTime::look() {
  constexpr std::uint64_t kRests = 200;
  const std::uint64_t now_ns = monotonic_ns();
  if (now_ns < next_look_ns_)
    return;
  const std::uint64_t before_ns = own_cpu_ns();
  read();
  next_look_ns_ = now_ns + kRests * (own_cpu_ns() - before_ns);
}

void TargetTime::read() {
  for (Task& task : tasks_)
    task.last_ns = std::max(task.last_ns, time_of(task).value_or(0));
}

void TargetTime::check_last() {
  read();
  stolen_ns_ = stolen_cpu_ns() - stolen_before_ns_;
  if (!is_command_ || tasks_.empty())
    return;
  // Ids are in ascending order, so parents come first: a process that ends meanwhile is counted at
  // most once.
  for (const pid_t pid : stream::descendants_of({tasks_.front().id}))
    descendants_ns_ += process_cpu_ns(pid).value_or(0) + children_cpu_ns(pid);
}

std::uint64_t TargetTime::used_ns() const {
  std::uint64_t used_ns = descendants_ns_;
  for (const Task& task : tasks_)
    used_ns += task.last_ns - task.first_ns;
  if (!is_command_ || tasks_.empty())
    return used_ns;
  const std::uint64_t waited_for_ns = ended_children_cpu_ns() - waited_for_before_ns_;
  return std::max(used_ns, waited_for_ns - std::min(waited_for_ns, tasks_.front().first_ns));
}

namespace {

/// A CPU has no timer while the kernel walks a stack.  The walks of deep stacks are one cause if
/// they took a quarter of the sampled time.  How busy the machine is does not matter.
std::string why_timers_were_late(const SampledTime& sampled) {
  constexpr std::uint64_t kMuch = 4;
  const std::string cause = ", because the timers of its CPUs fired late: ";
  if (sampled.walked_ns < sampled.ns / kMuch || sampled.ns == 0)
    return cause +
           "interrupts were off, as when threads wake others and wait, or a host held the CPU; "
           "such "
           "code has too few samples";
  const double walk_ns = static_cast<double>(sampled.walked_ns) *
                         static_cast<double>(sampled.clock.period_ns) /
                         static_cast<double>(sampled.ns);
  return cause + fmt::format("the kernel walks each stack for about {:.2g} ms, so lower --freq",
                             walk_ns / kNsPerMs);
}

/// Returns the standard deviation of the number of samples of whole CPUs.  The timers are in no
/// step with the target, so each period is sampled or not by chance; but not by chance at all where
/// the target has all of a CPU.
double deviation_of(const SampledTime& sampled, double periods) {
  const double all = periods * static_cast<double>(sampled.clock.period_ns);
  const double share =
      sampled.cpus_ns == 0 ? 0 : std::min(1.0, all / static_cast<double>(sampled.cpus_ns));
  return std::sqrt(periods * (1 - share));
}

}  // namespace

std::string describe_unsampled(const SampledTime& sampled, std::uint64_t used_ns) {
  const SampledClock& clock = sampled.clock;
  // Every recording has this much: the partial last period of each thread, on each CPU.
  constexpr double kUsualShare = 0.05, kUsualPeriods = 10;
  constexpr double kDeviations = 3;  // by chance, one recording of 740 has fewer samples
  const auto all = static_cast<double>(used_ns);
  const auto period = static_cast<double>(clock.period_ns);
  const double unsampled = all - static_cast<double>(sampled.ns);
  const bool is_of_cpus = clock.kind == SampledClock::Kind::kOfCpus;
  const double chance = is_of_cpus ? kDeviations * deviation_of(sampled, all / period) : 0;
  if (unsampled < kUsualShare * all || unsampled < std::max(kUsualPeriods, chance) * period)
    return "";
  const std::string times = fmt::format("{:.2f} of {:.2f} s CPU time without samples",
                                        unsampled / kNsPerSecond, all / kNsPerSecond);
  if (is_of_cpus && static_cast<double>(sampled.stolen_ns) >= unsampled / 2)
    return times + ", because a host held this machine's CPU: record when the host is less busy";
  if (is_of_cpus)
    return times + why_timers_were_late(sampled);
  if (clock.kind == SampledClock::Kind::kOfStops)
    return times +
           ", because threads were stopped too late: use --engine perf or bpf, or record when the "
           "machine is less busy";
  if (clock.kind == SampledClock::Kind::kOfTicks)
    return times +
           fmt::format(
               " of threads that run for less than one period ({:.3g} ms), or of programs without "
               "the library (static, set-user-ID)",
               period / kNsPerMs) +
           (sampled.programs_without < 2 ? ""
                                         : fmt::format("; {} programs and forked processes without "
                                                       "samples",
                                                       sampled.programs_without)) +
           ": use --engine ptrace";
  return times + fmt::format(
                     " of threads that run for less than one period ({:.3g} ms), in switches "
                     "between threads, or because a host held this machine's CPU: record a process "
                     "or command as root, which samples the first two",
                     period / kNsPerMs);
}

}  // namespace pe::recording

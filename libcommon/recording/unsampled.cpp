// SPDX-License-Identifier: MIT
#include "recording/unsampled.h"

#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <ctime>
#include <sstream>

#include "io/input.h"
#include "proc/maps.h"

namespace pe::recording {
namespace {

/// Of all threads of a process, those that have ended, too; also of a zombie.
std::optional<std::uint64_t> own_time_ns(pid_t pid) {
  clockid_t clock = 0;
  timespec time{};
  if (::clock_getcpuclockid(pid, &clock) != 0 || ::clock_gettime(clock, &time) != 0)
    return std::nullopt;
  return static_cast<std::uint64_t>(time.tv_sec) * kCpuSecondNs +
         static_cast<std::uint64_t>(time.tv_nsec);
}

/// The first number of /proc/TID/schedstat.
std::optional<std::uint64_t> time_of_thread_ns(pid_t tid) {
  constexpr std::size_t kMaxBytes = 256;
  std::istringstream text(
      io::read_small_file(fmt::format("/proc/{}/schedstat", tid), kMaxBytes).value_or(""));
  std::uint64_t time_ns = 0;
  return text >> time_ns ? std::optional(time_ns) : std::nullopt;
}

/// Of children that it has waited for, and those that these had: cutime and cstime of proc(5).
std::uint64_t time_of_children_ns(pid_t pid) {
  constexpr std::size_t kMaxBytes = 4096;
  const auto text = io::read_small_file(fmt::format("/proc/{}/stat", pid), kMaxBytes);
  const auto name_end = text ? text->rfind(')') : std::string::npos;
  if (name_end == std::string::npos)
    return 0;
  std::istringstream fields(text->substr(name_end + 1));
  std::string skipped;
  constexpr int kFirst = 3, kUserTime = 16;  // fields, as proc(5) counts them
  for (int i = kFirst; i < kUserTime; ++i)
    fields >> skipped;
  std::uint64_t user = 0, system = 0;
  if (!(fields >> user >> system))
    return 0;
  return (user + system) * (kCpuSecondNs / static_cast<std::uint64_t>(::sysconf(_SC_CLK_TCK)));
}

/// Of our own children that have been waited for.
std::uint64_t time_of_waited_for_ns() {
  rusage usage{};
  ::getrusage(RUSAGE_CHILDREN, &usage);
  constexpr std::uint64_t kMicrosecondNs = 1000;
  const auto seconds = usage.ru_utime.tv_sec + usage.ru_stime.tv_sec;
  const auto microseconds = usage.ru_utime.tv_usec + usage.ru_stime.tv_usec;
  return static_cast<std::uint64_t>(seconds) * kCpuSecondNs +
         static_cast<std::uint64_t>(microseconds) * kMicrosecondNs;
}

}  // namespace

void TargetTime::add(pid_t id, Kind kind) {
  Task task{id, kind, 0, 0};
  task.first_ns = task.last_ns = time_of(task).value_or(0);
  tasks_.push_back(task);
}

TargetTime::TargetTime(const Target& target) : is_command_(target.is_command) {
  // Children of before are not recorded, but counted once a process waits for them.
  for (const pid_t pid : target.processes)
    add(pid, proc::children_of(pid).empty() ? Kind::kWithChildren : Kind::kProcess);
  for (const pid_t tid : target.threads)
    add(tid, Kind::kThread);
}

std::optional<std::uint64_t> TargetTime::time_of(const Task& task) {
  if (task.kind == Kind::kThread)
    return time_of_thread_ns(task.id);
  const auto own_ns = own_time_ns(task.id);
  if (!own_ns || task.kind == Kind::kProcess)
    return own_ns;
  return *own_ns + time_of_children_ns(task.id);
}

void TargetTime::look() {
  for (Task& task : tasks_)
    task.last_ns = std::max(task.last_ns, time_of(task).value_or(0));
}

std::uint64_t TargetTime::used_ns() const {
  std::uint64_t used_ns = 0;
  for (const Task& task : tasks_)
    used_ns += task.last_ns - task.first_ns;
  if (!is_command_ || tasks_.empty())
    return used_ns;
  const std::uint64_t waited_for_ns = time_of_waited_for_ns();
  return std::max(used_ns, waited_for_ns - std::min(waited_for_ns, tasks_.front().first_ns));
}

std::string describe_unsampled(const SampledClock& clock, std::uint64_t used_ns,
                               std::uint64_t samples) {
  // Every recording has this: the rest of a period at the end of each of its threads, on each CPU.
  constexpr double kUsualShare = 0.05, kUsualPeriods = 10;
  // The number of samples of whole CPUs spreads by the root of itself at most: five times that.
  constexpr double kSigmas = 5;
  constexpr double kNsPerSecond = 1e9, kNsPerMs = 1e6;
  const auto all = static_cast<double>(used_ns);
  const auto period = static_cast<double>(clock.period_ns);
  const double unsampled = all - static_cast<double>(samples) * period;
  const double chance = clock.is_of_cpus ? kSigmas * std::sqrt(all / period) : 0;
  if (unsampled < kUsualShare * all || unsampled < std::max(kUsualPeriods, chance) * period)
    return "";
  const std::string times = fmt::format("{:.2f} of {:.2f} s CPU time without samples",
                                        unsampled / kNsPerSecond, all / kNsPerSecond);
  if (clock.is_of_cpus)
    return times + ": a host held this machine's CPU";
  return times +
         fmt::format(
             ": threads that run for less than one period ({:.3g} ms), switches between threads, "
             "or a host that held this machine's CPU; CAP_BPF and CAP_PERFMON sample the first two",
             period / kNsPerMs);
}

}  // namespace pe::recording

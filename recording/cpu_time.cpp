// SPDX-License-Identifier: MIT
#include "recording/cpu_time.h"

#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <ctime>
#include <sstream>
#include <string>

#include "base/clock.h"
#include "base/io/input.h"
#include "recording/thread_state.h"

namespace pe::recording {
namespace {

/// Returns the length of a tick, the unit of times in /proc/PID/stat and /proc/stat.
std::uint64_t tick_ns() {
  return kNsPerSecond / static_cast<std::uint64_t>(::sysconf(_SC_CLK_TCK));
}

}  // namespace

std::optional<std::uint64_t> thread_cpu_ns(pid_t tid) {
  constexpr std::size_t kMaxBytes = 256;
  const auto text = read_small_file(fmt::format("/proc/{}/schedstat", tid), kMaxBytes);
  const auto times = text ? stream::parse_schedstat(*text) : std::nullopt;
  return times ? std::optional(times->on_cpu_ns) : std::nullopt;
}

std::optional<std::uint64_t> process_cpu_ns(pid_t pid) {
  clockid_t clock{};
  timespec time{};
  if (::clock_getcpuclockid(pid, &clock) != 0 || ::clock_gettime(clock, &time) != 0)
    return std::nullopt;
  return ns_of(time);
}

std::uint64_t children_cpu_ns(pid_t pid) {
  constexpr std::size_t kMaxBytes = 4096;
  const auto text = read_small_file(fmt::format("/proc/{}/stat", pid), kMaxBytes);
  const auto name_end = text ? text->rfind(')') : std::string::npos;
  if (name_end == std::string::npos)
    return 0;
  std::istringstream fields(text->substr(name_end + 1));
  std::string skipped;
  constexpr int kFirst = 3, kUserTime = 16;  // fields as numbered in proc(5): cutime, cstime
  for (int i = kFirst; i < kUserTime; ++i)
    fields >> skipped;
  std::uint64_t user = 0, system = 0;
  if (!(fields >> user >> system))
    return 0;
  return (user + system) * tick_ns();
}

std::uint64_t ended_children_cpu_ns() {
  rusage usage{};
  ::getrusage(RUSAGE_CHILDREN, &usage);
  constexpr std::uint64_t kMicrosecondNs = 1000;
  const auto seconds = usage.ru_utime.tv_sec + usage.ru_stime.tv_sec;
  const auto microseconds = usage.ru_utime.tv_usec + usage.ru_stime.tv_usec;
  return static_cast<std::uint64_t>(seconds) * kNsPerSecond +
         static_cast<std::uint64_t>(microseconds) * kMicrosecondNs;
}

std::uint64_t stolen_cpu_ns() {
  constexpr std::size_t kMaxBytes = std::size_t{1} << 20;  // it lists all CPUs and interrupts
  std::istringstream fields(read_small_file("/proc/stat", kMaxBytes).value_or(""));
  std::string name;
  fields >> name;
  std::uint64_t ticks = 0;
  constexpr int kSteal = 8;  // user, nice, system, idle, iowait, irq, softirq, steal
  for (int i = 0; i < kSteal; ++i)
    if (!(fields >> ticks))
      return 0;
  return ticks * tick_ns();
}

}  // namespace pe::recording

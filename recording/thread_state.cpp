// SPDX-License-Identifier: MIT
#include "recording/thread_state.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <ctime>
#include <sstream>
#include <string>

#include "base/clock.h"
#include "base/error.h"
#include "base/io/input.h"
#include "base/parse_number.h"
#include "stream/proc/maps.h"

namespace pe::stream {
namespace {

constexpr std::size_t kMaxLineBytes = 4096;

/// Removes and returns the next word; empty at the end.
std::string_view take_word(std::string_view& text) {
  constexpr std::string_view kBlanks = " \n";
  text.remove_prefix(std::min(text.find_first_not_of(kBlanks), text.size()));
  const auto end = std::min(text.find_first_of(kBlanks), text.size());
  const std::string_view word = text.substr(0, end);
  text.remove_prefix(end);
  return word;
}

std::optional<std::uint64_t> parse_hex(std::string_view word) {
  if (!word.starts_with("0x"))
    return std::nullopt;
  constexpr int kBase = 16;
  return parse_number<std::uint64_t>(word.substr(2), kBase);
}

Fd open_file(pid_t pid, pid_t tid, const char* name) {
  const std::string path = fmt::format("/proc/{}/task/{}/{}", pid, tid, name);
  Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  const int error = errno;
  if (!file && (error == EMFILE || error == ENFILE))
    throw Error(fmt::format("too many threads: {} (ulimit -n)", errno_text(error)));
  return file;
}

/// Returns the file's current text; empty if the thread is gone.
std::string_view read_again(const Fd& file, std::array<char, kMaxLineBytes>& buffer) {
  const ssize_t n = file ? ::pread(file.get(), buffer.data(), buffer.size(), 0) : 0;
  return {buffer.data(), n > 0 ? static_cast<std::size_t>(n) : 0};
}

}  // namespace

std::optional<ThreadTimes> parse_schedstat(std::string_view text) {
  const auto on_cpu = parse_number<std::uint64_t>(take_word(text));
  const auto waited = parse_number<std::uint64_t>(take_word(text));
  const auto times = parse_number<std::uint64_t>(take_word(text));
  if (!on_cpu || !waited || !times)
    return std::nullopt;
  return ThreadTimes{.on_cpu_ns = *on_cpu, .waited_ns = *waited, .times_run = *times};
}

std::optional<ThreadState> parse_thread_stat(std::string_view text) {
  const auto name_end = text.rfind(')');
  if (name_end == std::string_view::npos)
    return std::nullopt;
  text.remove_prefix(name_end + 1);
  const std::string_view state = take_word(text);
  constexpr int kFieldsBetween = 35;  // state is the third, processor the 39th
  for (int i = 0; i < kFieldsBetween; ++i)
    take_word(text);
  const auto cpu = parse_number<std::uint32_t>(take_word(text));
  if (state.size() != 1 || !cpu)
    return std::nullopt;
  return ThreadState{.state = state[0], .cpu = *cpu};
}

std::optional<BlockedAt> parse_blocked_at(std::string_view text) {
  // The line is "running"; or the call's number, six arguments, sp and ip; or "-1", sp and ip.
  constexpr int kArguments = 6;
  const std::string_view number = take_word(text);
  if (number.empty() || number == "running")
    return std::nullopt;
  for (int i = 0; number != "-1" && i < kArguments; ++i)
    take_word(text);
  const auto sp = parse_hex(take_word(text));
  const auto ip = parse_hex(take_word(text));
  if (!sp || !ip)
    return std::nullopt;
  return BlockedAt{.sp = *sp, .ip = *ip};
}

std::optional<BlockedAt> blocked_at(pid_t pid, pid_t tid) {
  const auto text =
      read_small_file(fmt::format("/proc/{}/task/{}/syscall", pid, tid), kMaxLineBytes);
  return text ? parse_blocked_at(*text) : std::nullopt;
}

std::optional<std::uint64_t> mapped_pages(pid_t pid) {
  const auto text =
      read_small_file(fmt::format("/proc/{}/statm", live_thread_of(pid)), kMaxLineBytes);
  if (!text)
    return std::nullopt;
  std::string_view left = *text;
  return parse_number<std::uint64_t>(take_word(left));
}

ThreadFiles::ThreadFiles(pid_t pid, pid_t tid)
    : schedstat_(open_file(pid, tid, "schedstat")), stat_(open_file(pid, tid, "stat")) {}

std::optional<ThreadTimes> ThreadFiles::times() const {
  std::array<char, kMaxLineBytes> buffer;  // NOLINT(cppcoreguidelines-pro-type-member-init)
  return parse_schedstat(read_again(schedstat_, buffer));
}

std::optional<ThreadState> ThreadFiles::state() const {
  std::array<char, kMaxLineBytes> buffer;  // NOLINT(cppcoreguidelines-pro-type-member-init)
  return parse_thread_stat(read_again(stat_, buffer));
}

}  // namespace pe::stream

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

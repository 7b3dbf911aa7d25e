// SPDX-License-Identifier: MIT
#include "stream/proc/maps.h"

#include <dirent.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <limits>
#include <memory>
#include <system_error>
#include <unordered_map>
#include <unordered_set>

#include "base/characters.h"
#include "base/clock.h"
#include "base/io/input.h"
#include "base/parse_number.h"
#include "base/text.h"

namespace pe::stream {
namespace {

// 50,000 mappings of 100 bytes are 5 MB; a malicious process cannot make us hold more than this.
constexpr std::size_t kMaxMapsBytes = 64UL * 1024 * 1024;
constexpr std::size_t kMaxStatusBytes = 64UL * 1024;

std::vector<pid_t> numbered_entries(const std::string& folder) {
  std::vector<pid_t> numbers;
  const std::unique_ptr<DIR, int (*)(DIR*)> dir(::opendir(folder.c_str()), ::closedir);
  if (!dir)
    return numbers;
  while (const dirent* entry = ::readdir(dir.get()))  // NOLINT(concurrency-mt-unsafe)
    if (const auto number = parse_number<std::uint32_t>(entry->d_name))
      numbers.push_back(static_cast<pid_t>(*number));
  std::sort(numbers.begin(), numbers.end());
  return numbers;
}

std::uint64_t set_or_empty(std::string_view digits) {
  constexpr int kHexadecimal = 16;
  return parse_number<std::uint64_t>(digits, kHexadecimal).value_or(0);
}

/// Returns the text after "<key>:" in /proc/TID/status, without leading blanks.
std::string_view status_field(std::string_view status, std::string_view key) {
  const std::string start = fmt::format("\n{}:", key);
  const auto at = status.find(start);
  if (at == std::string_view::npos)
    return {};
  status.remove_prefix(at + start.size());
  status = status.substr(0, status.find('\n'));
  const auto first = status.find_first_not_of(" \t");
  return first == std::string_view::npos ? std::string_view{} : status.substr(first);
}

pid_t pid_or_zero(std::string_view text) {
  const auto number = parse_number<std::uint32_t>(text);
  constexpr auto kMost = static_cast<std::uint32_t>(std::numeric_limits<pid_t>::max());
  return number && *number <= kMost ? static_cast<pid_t>(*number) : 0;
}

}  // namespace

std::string unescape_path(std::string_view path) {
  std::string text;
  for_each_path_part(path, [&text](std::string_view part) { text += part; });
  return text;
}

std::optional<std::string> maps_of(pid_t pid) {
  auto text = read_small_file(fmt::format("/proc/{}/maps", pid), kMaxMapsBytes);
  // If the first thread has ended, its file is empty, but the files of the others still list the
  // mappings.
  for (const pid_t tid : text && text->empty() ? threads_of(pid) : std::vector<pid_t>{})
    if (text && text->empty())
      text = read_small_file(fmt::format("/proc/{}/task/{}/maps", pid, tid), kMaxMapsBytes);
  return text;
}

void for_each_mapping(std::string_view text, const std::function<void(const MapsLine&)>& on_map) {
  while (const auto line = take_until(text, '\n'))
    if (const auto map = parse_maps_line(*line))
      on_map(*map);
}

bool for_each_mapping(pid_t pid, const std::function<void(const MapsLine&)>& on_map) {
  const auto text = maps_of(pid);
  if (text)
    for_each_mapping(*text, on_map);
  return text.has_value();
}

pid_t live_thread_of(pid_t pid) {
  const auto has_program = [](pid_t tid) {
    char start{};
    return ::readlink(fmt::format("/proc/{}/exe", tid).c_str(), &start, 1) >= 0 || errno != ENOENT;
  };
  if (has_program(pid))
    return pid;
  const std::vector<pid_t> threads = threads_of(pid);
  const auto found = std::find_if(threads.begin(), threads.end(), has_program);
  return found == threads.end() ? pid : *found;
}

std::vector<pid_t> threads_of(pid_t pid) {
  return numbered_entries(fmt::format("/proc/{}/task", pid));
}

std::vector<pid_t> children_of(pid_t pid) {
  const auto text = read_small_file(fmt::format("/proc/{0}/task/{0}/children", pid), kMaxMapsBytes);
  std::vector<pid_t> children;
  std::string_view left = text ? std::string_view(*text) : std::string_view();
  while (const auto word = take_until(left, ' '))
    if (const auto number = parse_number<std::uint32_t>(*word))
      children.push_back(static_cast<pid_t>(*number));
  return children;
}

std::vector<pid_t> descendants_of(const std::vector<pid_t>& processes) {
  std::unordered_map<pid_t, std::vector<pid_t>> children;
  for (const pid_t pid : processes.empty() ? std::vector<pid_t>{} : all_processes())
    if (const auto status = status_of(pid))
      children[status->parent_pid].push_back(pid);
  std::vector<pid_t> found;
  std::unordered_set<pid_t> known(processes.begin(), processes.end());
  const auto add_children = [&](pid_t parent) {
    for (const pid_t child : children[parent])
      if (known.insert(child).second)
        found.push_back(child);
  };
  for (const pid_t pid : processes)
    add_children(pid);
  for (std::size_t next = 0; next < found.size();)  // add_children() extends it
    add_children(found[next++]);
  std::sort(found.begin(), found.end());
  return found;
}

std::vector<pid_t> processes_named(std::string_view name) {
  const auto has_name = [name](pid_t pid) {
    std::error_code refused;
    const pid_t live = live_thread_of(pid);
    const auto program =
        std::filesystem::read_symlink(fmt::format("/proc/{}/exe", live), refused).string();
    constexpr std::string_view kDeleted = " (deleted)";
    std::string_view file = program;
    if (file.ends_with(kDeleted))
      file.remove_suffix(kDeleted.size());
    if (comm_of(pid, pid) != name && (file.empty() || file_name(file) != name))
      return false;
    const auto status = status_of(live);
    return status && status->has_memory;
  };
  std::vector<pid_t> found = all_processes();
  std::erase_if(found, [&](pid_t pid) { return !has_name(pid); });
  return found;
}

std::vector<pid_t> all_processes() { return numbered_entries("/proc"); }

std::optional<std::string> comm_of(pid_t pid, pid_t tid) {
  auto text = read_small_file(fmt::format("/proc/{}/task/{}/comm", pid, tid), kMaxStatusBytes);
  if (text && text->ends_with('\n'))
    text->pop_back();
  return text;
}

std::optional<ProcessStat> stat_of(pid_t pid) {
  constexpr std::size_t kMaxBytes = 4096;
  const auto text = read_small_file(fmt::format("/proc/{}/stat", pid), kMaxBytes);
  const auto name = text ? text->find('(') : std::string::npos;
  const auto name_end = text ? text->rfind(')') : std::string::npos;
  if (name == std::string::npos || name_end == std::string::npos || name_end < name)
    return std::nullopt;
  ProcessStat stat{.comm = text->substr(name + 1, name_end - name - 1)};
  std::string_view fields = std::string_view(*text).substr(name_end + 1);
  // Fields as numbered in proc(5).
  constexpr int kFirst = 2, kParent = 4, kStartTime = 22, kCode = 26, kStack = 28;
  std::optional<std::uint64_t> ticks;
  for (int i = kFirst; i <= kStack; ++i) {
    const std::string_view field = take_until(fields, ' ').value_or("");
    const auto number = parse_number<std::uint64_t>(field);
    if (i == kParent)
      stat.parent_pid = pid_or_zero(field);
    else if (i == kStartTime)
      ticks = number;
    else if (i == kCode)
      stat.code_start = number.value_or(0);
    else if (i == kStack)
      stat.stack_start = number.value_or(0);
  }
  if (!ticks)
    return std::nullopt;
  const auto ticks_per_second = static_cast<std::uint64_t>(::sysconf(_SC_CLK_TCK));
  const std::uint64_t started_ns = *ticks * (kNsPerSecond / ticks_per_second);
  const std::uint64_t now_ns = monotonic_ns();  // first, for the other clock is not behind it
  const std::uint64_t suspended_ns = clock_ns(CLOCK_BOOTTIME) - now_ns;
  stat.start_ns = started_ns - std::min(started_ns, suspended_ns);
  return stat;
}

std::optional<ThreadStatus> status_of(pid_t tid) {
  const auto text = read_small_file(fmt::format("/proc/{}/status", tid), kMaxStatusBytes);
  return text ? parse_thread_status(*text) : std::nullopt;
}

std::optional<ThreadStatus> own_status() {
  const auto text = read_small_file("/proc/self/status", kMaxStatusBytes);
  return text ? parse_thread_status(*text) : std::nullopt;
}

std::optional<ThreadStatus> status_of(pid_t pid, pid_t tid) {
  const auto text =
      read_small_file(fmt::format("/proc/{}/task/{}/status", pid, tid), kMaxStatusBytes);
  return text ? parse_thread_status(*text) : std::nullopt;
}

bool has_ended(pid_t pid) {
  const auto threads = threads_of(pid);
  if (std::any_of(threads.begin(), threads.end(), [&](pid_t tid) { return tid != pid; }))
    return false;
  const auto status = status_of(pid);
  return !status || status->state == 'Z' || status->state == 'X';
}

std::optional<ThreadStatus> parse_thread_status(std::string_view text) {
  ThreadStatus status;
  status.pid = pid_or_zero(status_field(text, "Tgid"));
  status.parent_pid = pid_or_zero(status_field(text, "PPid"));
  const std::string_view in_namespaces = status_field(text, "NStgid");
  const auto last_tab = in_namespaces.rfind('\t');
  status.pid_in_namespace = pid_or_zero(
      last_tab == std::string_view::npos ? in_namespaces : in_namespaces.substr(last_tab + 1));
  std::string_view uids = status_field(text, "Uid");  // real, effective, saved, file system
  if (take_until(uids, '\t'))
    status.effective_uid = parse_number<std::uint32_t>(uids.substr(0, uids.find('\t'))).value_or(0);
  const std::string_view state = status_field(text, "State");
  status.state = state.empty() ? '?' : state[0];
  status.tracer_pid = pid_or_zero(status_field(text, "TracerPid"));
  status.has_memory = !status_field(text, "VmSize").empty();
  status.pending_signals = set_or_empty(status_field(text, "SigPnd"));
  status.process_signals = set_or_empty(status_field(text, "ShdPnd"));
  status.blocked_signals = set_or_empty(status_field(text, "SigBlk"));
  status.effective_capabilities = set_or_empty(status_field(text, "CapEff"));
  const std::string_view filters = status_field(text, "Seccomp_filters");
  status.filters =
      parse_number<std::uint32_t>(filters.empty() ? status_field(text, "Seccomp") : filters)
          .value_or(0);
  return status.pid == 0 ? std::nullopt : std::optional(status);
}

}  // namespace pe::stream

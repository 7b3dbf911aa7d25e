// SPDX-License-Identifier: MIT
#include "stream/proc/own_rights.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <string_view>

#include "base/characters.h"
#include "base/io/input.h"
#include "base/parse_number.h"
#include "stream/proc/maps.h"

namespace pe::stream {

bool has_capability(Capability capability) {
  const auto status = own_status();
  const bool is_effective =
      status && (status->effective_capabilities >> static_cast<unsigned>(capability) & 1) != 0;
  const bool counts_in_namespace = capability == Capability::kDacReadSearch ||
                                   capability == Capability::kKill ||
                                   capability == Capability::kSysPtrace;
  return is_effective && (counts_in_namespace || is_in_first_user_namespace());
}

namespace {

/// Returns whether the namespace of this process in that file has that name.
bool is_in_namespace(const char* path, std::string_view wanted) {
  std::array<char, 64> name{};
  const ssize_t n = ::readlink(path, name.data(), name.size() - 1);
  return n < 0 || std::string_view(name.data()) == wanted;  // a kernel without namespaces
}

}  // namespace

// The names are PROC_USER_INIT_INO and PROC_PID_INIT_INO, linux/proc_ns.h.

bool is_in_first_user_namespace() {
  return is_in_namespace("/proc/self/ns/user", "user:[4026531837]");
}

bool is_in_first_pid_namespace() {
  return is_in_namespace("/proc/self/ns/pid", "pid:[4026531836]");
}

std::string_view fix_of_unreadable_processes() {
  if (has_capability(Capability::kSysPtrace))
    return "a container or a security module forbids that, so record outside it";
  return ::geteuid() == 0 ? "root has no CAP_SYS_PTRACE here, so record outside the container"
                          : "record as root, or as the same user";
}

namespace {

constexpr std::uint64_t kUnlimited = std::numeric_limits<std::uint64_t>::max();
constexpr std::size_t kFileBytes = 64UL * 1024;

/// The names of a group's files: cgroup-v2.rst, and cgroup-v1/memory.rst, in the kernel's
/// Documentation/admin-guide.
struct Names {
  std::string_view limit, used, droppable;
};
constexpr Names kOfV2{"memory.max", "memory.current", "inactive_file "};
constexpr Names kOfV1{"memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file "};

/// Returns the number in a file of one line; nullopt for "max".
std::optional<std::uint64_t> number_in(const std::string& path) {
  const std::string text = read_small_file(path, kFileBytes).value_or("");
  return parse_number<std::uint64_t>(std::string_view(text).substr(0, text.find('\n')));
}

/// Returns the number after `key` at the start of a line.
std::optional<std::uint64_t> number_after(const std::string& text, std::string_view key) {
  std::string_view rest = text;
  while (auto line = take_until(rest, '\n')) {
    if (!line->starts_with(key))
      continue;
    line->remove_prefix(key.size());
    line->remove_prefix(std::min(line->find_first_not_of(' '), line->size()));
    return parse_number<std::uint64_t>(line->substr(0, line->find(' ')));
  }
  return std::nullopt;
}

/// Returns what one group allows still.
std::uint64_t left_in(const std::string& folder, const Names& names) {
  const auto path = [&](std::string_view name) { return folder + "/" + std::string(name); };
  const auto limit = number_in(path(names.limit));
  const auto used = number_in(path(names.used));
  if (!limit || !used)
    return kUnlimited;
  const std::string statistics = read_small_file(path("memory.stat"), kFileBytes).value_or("");
  const std::uint64_t droppable = number_after(statistics, names.droppable).value_or(0);
  const std::uint64_t kept = *used - std::min(*used, droppable);
  return *limit - std::min(*limit, kept);
}

/// The same for a group and all that it is in.
std::uint64_t left_in_all(const std::string& root, std::string_view group, const Names& names) {
  std::uint64_t left = kUnlimited;
  // In a container, the path may be one that only its host has: then the root is its own group.
  for (std::string path(group);; path.resize(path.rfind('/'))) {
    left = std::min(left, left_in(root + path, names));
    if (path.find('/') == std::string::npos)
      return left;
  }
}

std::uint64_t left_in_groups(const std::string& own_groups, const std::string& groups) {
  std::uint64_t left = kUnlimited;
  // Lines are "NUMBER:CONTROLLERS:PATH".
  std::string_view rest = own_groups;
  while (auto line = take_until(rest, '\n')) {
    take_until(*line, ':');
    const auto controllers = take_until(*line, ':');
    if (controllers == "")
      left = std::min(left, left_in_all(groups, *line, kOfV2));
    else if (controllers == "memory")
      left = std::min(left, left_in_all(groups + "/memory", *line, kOfV1));
  }
  return left;
}

}  // namespace

std::uint64_t available_memory(const std::string& proc, const std::string& groups) {
  constexpr std::uint64_t kKilobyte = 1024;
  const std::string machine = read_small_file(proc + "/meminfo", kFileBytes).value_or("");
  const auto available = number_after(machine, "MemAvailable:");
  std::uint64_t left = available ? *available * kKilobyte : kUnlimited;
  rlimit limit{};
  if (::getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
    left = std::min<std::uint64_t>(left, limit.rlim_cur);
  const std::string own = read_small_file(proc + "/self/cgroup", kFileBytes).value_or("");
  return std::min(left, left_in_groups(own, groups));
}

std::uint64_t available_memory() { return available_memory("/proc", "/sys/fs/cgroup"); }

std::uint64_t share_of_memory(std::uint64_t most, std::uint64_t divisor) {
  return std::min(most, available_memory() / divisor);
}

}  // namespace pe::stream

// SPDX-License-Identifier: MIT
#include "recording/inprocess/runtime/proc_self.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <csignal>

#include "base/parse_number.h"

namespace pe::inprocess {
namespace {

/// Makes the system call itself: open(2) may be a hook of the program's.
int open_to_read(const char* path, int flags) noexcept {
  return static_cast<int>(::syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC | flags, 0));
}

/// Returns the text from the start of a field's value on; empty if there is no such field.  `name`
/// is that at the line's start, such as "SigBlk:\t".
std::string_view after(std::string_view name, std::string_view status) noexcept {
  const auto at = status.find(name);
  return at == std::string_view::npos ? std::string_view() : status.substr(at + name.size());
}

}  // namespace

std::string_view read_proc(const char* path, std::span<char> room) noexcept {
  const int fd = open_to_read(path, 0);
  if (fd < 0)
    return {};
  std::size_t length = 0;
  while (length < room.size()) {
    const long n = ::syscall(SYS_read, fd, room.data() + length, room.size() - length);
    if (n < 0 && errno == EINTR)
      continue;
    if (n <= 0)
      break;
    length += static_cast<std::size_t>(n);
  }
  ::syscall(SYS_close, fd);
  return {room.data(), length};
}

std::string_view read_of_thread(pid_t tid, const char* name, std::span<char> room) noexcept {
  std::array<char, 64> path{};
  char* end = path.data();
  const auto add = [&end](std::string_view text) {
    end = std::copy(text.begin(), text.end(), end);
  };
  constexpr std::size_t kMostDigits = 10;
  add("/proc/self/task/");
  end = std::to_chars(end, end + kMostDigits, tid).ptr;
  add("/");
  add(std::string_view(name).substr(0, 16));
  *end = '\0';
  return read_proc(path.data(), room);
}

std::uint64_t resident_peak_bytes(std::string_view status) noexcept {
  constexpr std::uint64_t kKiB = 1024;
  std::string_view value = after("VmHWM:", status);
  value.remove_prefix(std::min(value.size(), value.find_first_not_of("\t ")));
  return parse_number<std::uint64_t>(value.substr(0, value.find(' '))).value_or(0) * kKiB;
}

bool reports_blocked_sigprof(std::string_view status) noexcept {
  constexpr std::size_t kDigits = 16;
  constexpr int kHexadecimal = 16;
  const auto set =
      parse_number<std::uint64_t>(after("SigBlk:\t", status).substr(0, kDigits), kHexadecimal);
  return set && (*set >> (SIGPROF - 1) & 1) != 0;
}

std::uint32_t filters_in(std::string_view status) noexcept {
  std::string_view value = after("Seccomp_filters:\t", status);
  if (value.empty())
    value = after("Seccomp:\t", status);
  return parse_number<std::uint32_t>(value.substr(0, value.find('\n'))).value_or(0);
}

std::uint64_t mapped_pages(std::string_view statm) noexcept {
  return parse_number<std::uint64_t>(statm.substr(0, statm.find(' '))).value_or(0);
}

TaskFolder::TaskFolder() noexcept : fd_(open_to_read("/proc/self/task", O_DIRECTORY)) {}

TaskFolder::~TaskFolder() {
  if (fd_ >= 0)
    ::syscall(SYS_close, fd_);
}

pid_t TaskFolder::next() noexcept {
  for (;;) {
    if (at_ >= bytes_) {
      bytes_ = fd_ < 0 ? 0 : ::syscall(SYS_getdents64, fd_, entries_, sizeof entries_);
      at_ = 0;
      if (bytes_ <= 0)
        return 0;
    }
    const auto* entry = reinterpret_cast<const dirent64*>(entries_ + at_);
    at_ += entry->d_reclen;
    if (const auto tid = parse_number<std::uint32_t>(entry->d_name))
      return static_cast<pid_t>(*tid);
  }
}

}  // namespace pe::inprocess

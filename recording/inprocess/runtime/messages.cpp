// SPDX-License-Identifier: MIT
#include "recording/inprocess/runtime/messages.h"

#include <poll.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <ctime>

#include "recording/inprocess/keep_errno.h"

namespace pe::inprocess {
namespace {

struct StandardError {
  bool is_known;
  dev_t device;
  ino_t inode;
};
constinit StandardError
    began_with{};  // NOLINT(cppcoreguidelines-avoid-non-const-global-variables): one a process

/// Uses the system call, as for poll(2) below.  clang's ThreadSanitizer wraps both functions, and
/// its wrappers crash until the program has started.
StandardError standard_error() noexcept {
  struct stat status = {};
  if (::syscall(SYS_fstat, STDERR_FILENO, &status) != 0)
    return {};
  return {true, status.st_dev, status.st_ino};
}

bool is_still_standard_error() noexcept {
  const StandardError now = standard_error();
  return began_with.is_known && now.is_known && now.device == began_with.device &&
         now.inode == began_with.inode;
}

/// Returns a signal's bit in the kernel's form of a signal set.
constexpr std::uint64_t bit_of(int signal) noexcept {
  return std::uint64_t{1} << static_cast<unsigned>(signal - 1);
}

/// Removes the pending signal that a write has raised, unless it was pending before.
void take_back(int signal, std::uint64_t pending_before) noexcept {
  const std::uint64_t set = bit_of(signal);
  constexpr timespec kAtOnce{};
  if ((pending_before & set) == 0)
    ::syscall(SYS_rt_sigtimedwait, &set, nullptr, &kAtOnce, sizeof set);
}

/// Writes with three signals blocked: those of pipes without reader, of files that may not grow
/// (ulimit -f), and of terminals that belong to other process groups.
void write_unharmed(std::string_view text) noexcept {
  pollfd polled{STDERR_FILENO, POLLOUT, 0};
  if (::syscall(SYS_poll, &polled, 1, 0) != 1 || (polled.revents & POLLOUT) == 0)
    return;
  const std::uint64_t blocked = bit_of(SIGPIPE) | bit_of(SIGXFSZ) | bit_of(SIGTTOU);
  std::uint64_t before = 0;
  std::uint64_t pending = 0;
  if (::syscall(SYS_rt_sigprocmask, SIG_BLOCK, &blocked, &before, sizeof before) != 0)
    return;
  ::syscall(SYS_rt_sigpending, &pending, sizeof pending);
  const long written = ::syscall(SYS_write, STDERR_FILENO, text.data(), text.size());
  if (written < 0 && (errno == EPIPE || errno == EFBIG))
    take_back(errno == EPIPE ? SIGPIPE : SIGXFSZ, pending);
  ::syscall(SYS_rt_sigprocmask, SIG_SETMASK, &before, nullptr, sizeof before);
}

}  // namespace

void note_standard_error() noexcept {
  const KeepErrno keep;
  began_with = standard_error();
}

void be_silent() noexcept { began_with = {}; }

void report_line(std::string_view tool, std::string_view what, int error) noexcept {
  const KeepErrno keep;
  std::array<char, 256> text{};
  char* end = text.data();
  const auto add = [&end, &text](std::string_view piece) {
    const auto room = static_cast<std::size_t>(text.data() + text.size() - end);
    end = std::copy_n(piece.data(), std::min(piece.size(), room), end);
  };
  const auto add_number = [&end, &text](int number) {
    end = std::to_chars(end, text.data() + text.size(), number).ptr;
  };
  if (!is_still_standard_error())
    return;
  add(tool);
  add(": process ");
  add_number(static_cast<int>(::getpid()));
  add(" ");
  add(what);
  if (error != 0) {
    const char* const words = ::strerrordesc_np(error);  // loads no translation
    add(" (");
    add(words != nullptr ? words : "unknown error");
    add(")");
  }
  add("\n");
  write_unharmed({text.data(), static_cast<std::size_t>(end - text.data())});
}

void report_failure(std::string_view tool, std::string_view start,
                    const Failure& failure) noexcept {
  std::array<char, 128> text{};
  const std::string_view what(failure.what);
  char* end = std::copy_n(start.data(), std::min(start.size(), text.size()), text.data());
  const auto room = static_cast<std::size_t>(text.data() + text.size() - end);
  end = std::copy_n(what.data(), std::min(what.size(), room), end);
  report_line(tool, {text.data(), static_cast<std::size_t>(end - text.data())}, failure.error);
}

}  // namespace pe::inprocess

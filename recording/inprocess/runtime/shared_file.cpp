// SPDX-License-Identifier: MIT
#include "recording/inprocess/runtime/shared_file.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <ctime>
#include <limits>

#include "recording/inprocess/keep_errno.h"

namespace pe::inprocess {
namespace {

bool fail(Failure& failure, const char* what, int error) noexcept {
  failure = {what, error};
  return false;
}

/// The size of the shared memory, and its protection.
struct Plan {
  std::uint64_t bytes;
  int protection;
};

bool prepare(int fd, const Plan& plan, std::byte*& base, Failure& failure) noexcept {
  if (allowed_file_bytes() < plan.bytes)
    return fail(failure, "the file size limit (ulimit -f) is too low", 0);
  if (::ftruncate(fd, static_cast<off_t>(plan.bytes)) != 0)
    return fail(failure, "cannot size its memory", errno);
  if (::fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0)
    return fail(failure, "cannot seal its memory", errno);
  // Use system calls, because mmap(3) and similar functions may be hooks.
  const long mapped =
      ::syscall(SYS_mmap, nullptr, plan.bytes, plan.protection, MAP_SHARED | MAP_NORESERVE, fd, 0L);
  if (mapped == -1)
    return fail(failure, "cannot map its memory (ulimit -v?)", errno);
  base = reinterpret_cast<std::byte*>(mapped);  // NOLINT(performance-no-int-to-ptr)
  ::syscall(SYS_madvise, base, plan.bytes, MADV_DONTDUMP);
  return true;
}

bool connect_to(int socket, std::string_view name) noexcept {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (name.size() >= sizeof address.sun_path)
    return false;
  std::copy(name.begin(), name.end(), address.sun_path + 1);
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  return ::syscall(SYS_connect, socket, &address, size) == 0;
}

}  // namespace

std::uint64_t allowed_file_bytes() noexcept {
  rlimit limit{};
  const bool is_limited = ::getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY;
  return is_limited ? limit.rlim_cur : std::numeric_limits<std::uint64_t>::max();
}

std::optional<SharedFile> make_shared_file(const char* name, std::uint64_t bytes, int protection,
                                           Failure& failure) noexcept {
  const int fd = ::memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (fd < 0) {
    failure = {"cannot create its memory", errno};
    return std::nullopt;
  }
  std::byte* base = nullptr;
  if (prepare(fd, {bytes, protection}, base, failure))
    return SharedFile{fd, base};
  ::syscall(SYS_close, fd);
  return std::nullopt;
}

/// Uses system calls: see thread_sanitizer.h.
Link::Link(std::string_view name, int patience_s) noexcept
    : socket_(static_cast<int>(::syscall(SYS_socket, AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0))) {
  const timeval patience{patience_s, 0};
  if (socket_ >= 0 && patience_s != 0)
    ::syscall(SYS_setsockopt, socket_, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
  if (socket_ < 0 || connect_to(socket_, name))
    return;
  const KeepErrno keep;
  ::syscall(SYS_close, socket_);
  socket_ = -1;
}

Link::~Link() {
  const KeepErrno keep;
  if (socket_ >= 0)
    ::syscall(SYS_close, socket_);
}

bool Link::is_to_parent() const noexcept {
  ucred peer{};
  socklen_t size = sizeof peer;
  return ::syscall(SYS_getsockopt, socket_, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 &&
         peer.pid != 0 && peer.pid == ::getppid();
}

bool Link::send_file(int fd, std::string_view key) const noexcept {
  const std::string_view text = key.empty() ? " " : key;    // a descriptor needs at least a byte
  iovec part{const_cast<char*>(text.data()), text.size()};  // NOLINT: only read
  alignas(cmsghdr) std::array<std::byte, CMSG_SPACE(sizeof fd)> control{};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  cmsghdr* rights = CMSG_FIRSTHDR(&message);
  rights->cmsg_level = SOL_SOCKET;
  rights->cmsg_type = SCM_RIGHTS;
  rights->cmsg_len = CMSG_LEN(sizeof fd);
  std::memcpy(CMSG_DATA(rights), &fd, sizeof fd);
  return ::sendmsg(socket_, &message, MSG_NOSIGNAL) == static_cast<ssize_t>(text.size());
}

void Link::send_reason(const Failure& failure) const noexcept {
  ::syscall(SYS_sendto, socket_, failure.what, std::strlen(failure.what), MSG_NOSIGNAL, nullptr, 0);
}

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

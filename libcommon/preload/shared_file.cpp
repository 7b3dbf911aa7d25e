// SPDX-License-Identifier: MIT
#include "preload/shared_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <limits>

namespace pe::preload {
namespace {

bool fail(Failure& failure, const char* what, int error) noexcept {
  failure = {what, error};
  return false;
}

bool prepare(int fd, std::uint64_t bytes, std::byte*& base, Failure& failure) noexcept {
  if (allowed_file_bytes() < bytes)
    return fail(failure, "the limit of file sizes (ulimit -f) is too low", 0);
  if (::ftruncate(fd, static_cast<off_t>(bytes)) != 0)
    return fail(failure, "cannot size its memory", errno);
  if (::fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0)
    return fail(failure, "cannot seal its memory", errno);
  // Not by mmap(3) and so on: those may be hooks.
  const long mapped = ::syscall(SYS_mmap, nullptr, bytes, PROT_READ | PROT_WRITE,
                                MAP_SHARED | MAP_NORESERVE, fd, 0L);
  if (mapped == -1)
    return fail(failure, "cannot map its memory (ulimit -v?)", errno);
  base = reinterpret_cast<std::byte*>(mapped);  // NOLINT(performance-no-int-to-ptr)
  ::syscall(SYS_madvise, base, bytes, MADV_DONTDUMP);
  return true;
}

bool send_over(int socket, int fd, const sockaddr_un& address, socklen_t size,
               std::string_view text) noexcept {
  // Whoever listens may have stopped to: a program is not to hang for that.
  constexpr timeval kPatience{1, 0};
  ::setsockopt(socket, SOL_SOCKET, SO_SNDTIMEO, &kPatience, sizeof kPatience);
  if (::connect(socket, reinterpret_cast<const sockaddr*>(&address), size) != 0)
    return false;
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
  return ::sendmsg(socket, &message, MSG_NOSIGNAL) == static_cast<ssize_t>(text.size());
}

}  // namespace

std::uint64_t allowed_file_bytes() noexcept {
  rlimit limit{};
  const bool is_limited = ::getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY;
  return is_limited ? limit.rlim_cur : std::numeric_limits<std::uint64_t>::max();
}

std::optional<SharedFile> make_shared_file(const char* name, std::uint64_t bytes,
                                           Failure& failure) noexcept {
  const int fd = ::memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (fd < 0) {
    failure = {"cannot create its memory", errno};
    return std::nullopt;
  }
  std::byte* base = nullptr;
  if (prepare(fd, bytes, base, failure))
    return SharedFile{fd, base};
  ::syscall(SYS_close, fd);
  return std::nullopt;
}

bool send_file(int fd, std::string_view name, std::string_view message, Failure& failure) noexcept {
  sockaddr_un address{};
  if (name.size() >= sizeof address.sun_path)
    return fail(failure, "the socket's name is too long", 0);
  const int socket = ::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
  if (socket < 0)
    return fail(failure, "cannot create a socket", errno);
  address.sun_family = AF_UNIX;
  std::copy(name.begin(), name.end(), address.sun_path + 1);
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  const bool is_sent = send_over(socket, fd, address, size, message);
  if (!is_sent)
    fail(failure, "cannot reach who records", errno);
  ::syscall(SYS_close, socket);
  return is_sent;
}

void report_line(std::string_view tool, std::string_view what, int error) noexcept {
  std::array<char, 256> text{};
  char* end = text.data();
  const auto add = [&end, &text](std::string_view piece) {
    const auto room = static_cast<std::size_t>(text.data() + text.size() - end);
    end = std::copy_n(piece.data(), std::min(piece.size(), room), end);
  };
  const auto add_number = [&end, &text](int number) {
    end = std::to_chars(end, text.data() + text.size(), number).ptr;
  };
  add(tool);
  add(": process ");
  add_number(static_cast<int>(::getpid()));
  add(" ");
  add(what);
  if (error != 0) {
    add(" (errno ");
    add_number(error);
    add(")");
  }
  add("\n");
  const long written = ::syscall(SYS_write, STDERR_FILENO, text.data(), end - text.data());
  static_cast<void>(written);  // nobody to tell
}

}  // namespace pe::preload

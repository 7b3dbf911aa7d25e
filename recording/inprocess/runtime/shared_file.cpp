// SPDX-License-Identifier: MIT
#include "recording/inprocess/runtime/shared_file.h"

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
#include <cstring>
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

}  // namespace pe::inprocess

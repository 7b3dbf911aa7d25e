// SPDX-License-Identifier: MIT
#include "malloctrace/preload/shared_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>

#include "heap/layout.h"

namespace pe::malloctrace {
namespace {

bool fail(SharedFailure& failure, const char* what, int error) noexcept {
  failure = {what, error};
  return false;
}

/// Growing a file beyond the limit of its size would kill the process by SIGXFSZ.
bool is_size_allowed() noexcept {
  rlimit limit{};
  return ::getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY ||
         limit.rlim_cur >= heap::kFileBytes;
}

bool prepare(int fd, std::byte*& base, SharedFailure& failure) noexcept {
  if (!is_size_allowed())
    return fail(failure, "the limit of file sizes (ulimit -f) is below 24 GiB", 0);
  if (::ftruncate(fd, static_cast<off_t>(heap::kFileBytes)) != 0)
    return fail(failure, "cannot size its memory", errno);
  if (::fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0)
    return fail(failure, "cannot seal its memory", errno);
  const long mapped =
      ::syscall(SYS_mmap, nullptr, heap::kFileBytes, PROT_NONE, MAP_SHARED | MAP_NORESERVE, fd, 0L);
  if (mapped == -1)
    return fail(failure, "cannot map 24 GiB of addresses (ulimit -v?)", errno);
  base = reinterpret_cast<std::byte*>(mapped);  // NOLINT(performance-no-int-to-ptr)
  ::syscall(SYS_madvise, base, heap::kFileBytes, MADV_DONTDUMP);
  return true;
}

bool connect_to(int socket, std::string_view name) noexcept {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::copy(name.begin(), name.end(), address.sun_path + 1);
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  return ::connect(socket, reinterpret_cast<const sockaddr*>(&address), size) == 0;
}

}  // namespace

std::optional<SharedFile> make_shared_file(SharedFailure& failure) noexcept {
  const int fd = ::memfd_create("malloctrace", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (fd < 0) {
    failure = {"cannot create its memory", errno};
    return std::nullopt;
  }
  std::byte* base = nullptr;
  if (prepare(fd, base, failure))
    return SharedFile{fd, base};
  ::syscall(SYS_close, fd);
  return std::nullopt;
}

Link::Link(std::string_view name) noexcept
    : socket_(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0)) {
  if (socket_ < 0 || connect_to(socket_, name))
    return;
  ::syscall(SYS_close, socket_);
  socket_ = -1;
}

Link::~Link() {
  if (socket_ >= 0)
    ::syscall(SYS_close, socket_);
}

bool Link::is_to_parent() const noexcept {
  ucred peer{};
  socklen_t size = sizeof peer;
  return ::getsockopt(socket_, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 && peer.pid != 0 &&
         peer.pid == ::getppid();
}

bool Link::send_file(int fd) const noexcept {
  char byte = 0;
  iovec part{&byte, 1};
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
  return ::sendmsg(socket_, &message, MSG_NOSIGNAL) == 1;
}

void Link::send_reason(const SharedFailure& failure) const noexcept {
  static_cast<void>(::send(socket_, failure.what, std::strlen(failure.what), MSG_NOSIGNAL));
}

}  // namespace pe::malloctrace

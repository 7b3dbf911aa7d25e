// SPDX-License-Identifier: MIT
#include "preload/listener.h"

#include <fmt/format.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <optional>
#include <utility>
#include <vector>

#include "base/error.h"

namespace pe::preload {
namespace {

/// 32 hexadecimal digits that nobody guesses.
std::string random_digits() {
  std::array<unsigned char, 16> bytes{};
  if (::getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size()))
    throw_errno("getrandom", errno);
  std::string digits;
  for (const unsigned char byte : bytes)
    digits += fmt::format("{:02x}", byte);
  return digits;
}

Fd listen_at(const std::string& name) {
  Fd listener(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path + 1, name.data(),
              std::min(name.size(), sizeof address.sun_path - 1));
  const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  // As many may wait as the system allows: a program may start hundreds of processes at once.
  constexpr int kBacklog = 1 << 16;
  if (!listener || ::bind(listener.get(), reinterpret_cast<sockaddr*>(&address), length) != 0 ||
      ::listen(listener.get(), kBacklog) != 0)
    throw_errno("socket for programs that are looked into", errno);
  return listener;
}

struct Message {
  std::string text;
  std::vector<Fd> fds;
};

/// nullopt: nothing has come yet.
std::optional<Message> receive_message(int socket) {
  constexpr std::size_t kMostFds = 8;
  alignas(cmsghdr) std::array<std::byte, CMSG_SPACE(kMostFds * sizeof(int))> control{};
  std::array<char, 64> content{};
  iovec part{content.data(), content.size()};
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  header.msg_control = control.data();
  header.msg_controllen = control.size();
  ssize_t n;
  do
    n = ::recvmsg(socket, &header, MSG_CMSG_CLOEXEC);
  while (n < 0 && errno == EINTR);
  if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
    return std::nullopt;
  Message message;
  if (n < 0)
    return message;
  message.text.assign(content.data(), static_cast<std::size_t>(n));
  for (cmsghdr* control_header = CMSG_FIRSTHDR(&header); control_header != nullptr;
       control_header = CMSG_NXTHDR(&header, control_header)) {
    if (control_header->cmsg_level != SOL_SOCKET || control_header->cmsg_type != SCM_RIGHTS)
      continue;
    const std::size_t count = (control_header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t i = 0; i < count; ++i) {
      int fd;
      std::memcpy(&fd, CMSG_DATA(control_header) + i * sizeof fd, sizeof fd);
      message.fds.emplace_back(fd);
    }
  }
  return message;
}

}  // namespace

Listener::Listener(std::string_view prefix)
    : socket_name_(fmt::format("{}-{}", prefix, random_digits())),
      key_(random_digits()),
      events_(::epoll_create1(EPOLL_CLOEXEC)),
      listener_(listen_at(socket_name_)) {
  if (!events_)
    throw_errno("epoll_create", errno);
  watch(listener_.get());
}

void Listener::watch(int other) const {
  epoll_event event{};
  event.events = EPOLLIN;
  ::epoll_ctl(events_.get(), EPOLL_CTL_ADD, other, &event);
}

void Listener::take_in(const OnFile& on_file) {
  for (;;) {
    Fd socket(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    // With no descriptors left, they wait until other processes have ended.
    if (!socket && errno != EINTR && errno != ECONNABORTED)
      break;
    if (!socket)
      continue;
    ucred peer{};
    socklen_t length = sizeof peer;
    if (::getsockopt(socket.get(), SOL_SOCKET, SO_PEERCRED, &peer, &length) != 0)
      continue;
    if (only_pid_ != 0 && peer.pid != only_pid_)
      continue;  // begun by a program, which its library cannot tell from the command
    const int fd = socket.get();
    Connection connection{std::move(socket), peer.pid, peer.uid == ::geteuid()};
    if (receive(connection, on_file))
      continue;
    watch(fd);
    connections_.emplace(fd, std::move(connection));
  }
  std::erase_if(connections_, [&](const auto& item) { return receive(item.second, on_file); });
}

/// Takes what it has sent; false if that has not come yet.
bool Listener::receive(const Connection& connection, const OnFile& on_file) {
  auto message = receive_message(connection.socket.get());
  if (!message)
    return false;
  if (!connection.is_own_user && message->text != key_)
    refuse("of another user");
  else if (message->fds.size() != 1)
    refuse("that sent no shared memory");
  else
    on_file(connection.pid, std::move(message->fds.front()));
  return true;
}

}  // namespace pe::preload

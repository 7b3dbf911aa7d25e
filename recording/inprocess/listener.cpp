// SPDX-License-Identifier: MIT
#include "recording/inprocess/listener.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstring>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/fd.h"

namespace pe::inprocess {
namespace {

/// Returns 32 hexadecimal digits that nobody can guess.
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
  // The queue is as long as the system allows: a program may start hundreds of processes at once.
  constexpr int kBacklog = 1 << 16;
  if (!listener || ::bind(listener.get(), reinterpret_cast<sockaddr*>(&address), length) != 0 ||
      ::listen(listener.get(), kBacklog) != 0)
    throw_errno("socket for recorded programs", errno);
  return listener;
}

}  // namespace

struct Listener::Message {
  std::string text;
  std::vector<Fd> fds;
  bool is_cut = false;  ///< more files were sent than we had free descriptors for
};

namespace {

/// Returns false if nothing has arrived yet.
bool receive_message(int socket, Listener::Message& message) {
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
    return false;
  if (n < 0)
    return true;
  message.text.assign(content.data(), static_cast<std::size_t>(n));
  message.is_cut = (header.msg_flags & MSG_CTRUNC) != 0;
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
  return true;
}

}  // namespace

Listener::Listener(std::string_view prefix)
    : socket_name_(fmt::format("{}-{}", prefix, random_digits())),
      key_(random_digits()),
      events_(::epoll_create1(EPOLL_CLOEXEC)),
      listener_(listen_at(socket_name_)) {
  if (!events_)
    throw_errno("epoll_create", errno);
  listen_again(true);
}

void Listener::listen_again(bool is_wanted) {
  if (is_wanted == is_listening_)
    return;
  if (is_wanted)
    watch(listener_);
  else
    ::epoll_ctl(events_.get(), EPOLL_CTL_DEL, listener_.get(), nullptr);
  is_listening_ = is_wanted;
}

void Listener::watch(const Fd& other) const {
  epoll_event event{};
  event.events = EPOLLIN;
  ::epoll_ctl(events_.get(), EPOLL_CTL_ADD, other.get(), &event);
}

Fd Listener::watch_end(pid_t pid) const {
  Fd pidfd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  if (pidfd)
    watch(pidfd);
  return pidfd;
}

bool Listener::hold_reserve() {
  if (!reserve_)
    reserve_ = Fd(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  return static_cast<bool>(reserve_);
}

bool Listener::take_in(const OnFile& on_file) {
  accept_all(on_file);
  return receive_all(0, on_file);
}

void Listener::accept_all(const OnFile& on_file) {
  // A process of another user may connect faster than we accept.  The limit lets us serve the
  // others; the rest follows at the next call.
  constexpr std::size_t kMostStrangersAtOnce = 1000;
  for (std::size_t strangers = 0; strangers < kMostStrangersAtOnce;) {
    if (!hold_reserve() || !has_free_descriptors(kept_free_))
      return listen_again(false);
    Fd socket(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!socket && (errno == EINTR || errno == ECONNABORTED))
      continue;
    // Without free descriptors, connections wait until other processes have ended.  We try again at
    // each call.
    if (!socket)
      return listen_again(errno == EAGAIN || errno == EWOULDBLOCK);
    ucred peer{};
    socklen_t length = sizeof peer;
    if (::getsockopt(socket.get(), SOL_SOCKET, SO_PEERCRED, &peer, &length) != 0)
      continue;
    const bool is_own_user = peer.uid == ::geteuid();
    const bool is_stranger = !is_own_user && peer.uid != 0;
    strangers += is_stranger ? 1 : 0;
    if (only_pid_ != 0 && peer.pid != only_pid_)
      continue;  // a program started it; its library cannot distinguish it from the command
    watch(socket);
    connections_.push_back({std::move(socket), peer.pid, is_own_user, is_stranger});
    // A process that executes another program connects again, after it has sent for the previous
    // program.  The older message must be received first.  Otherwise the newer program would be
    // mistaken for the ended one.
    receive_all(peer.pid, on_file);
    bound_silent(is_stranger);
  }
  listen_again(true);
}

/// Drops the oldest silent connection above the maximum.  Each costs a descriptor, and a check
/// whenever a message arrives.
void Listener::bound_silent(bool are_strangers) {
  const auto is_one = [are_strangers](const Connection& connection) {
    return connection.is_stranger == are_strangers;
  };
  const auto silent =
      static_cast<std::size_t>(std::count_if(connections_.begin(), connections_.end(), is_one));
  if (silent <= (are_strangers ? kMostSilentStrangers : kMostSilent))
    return;
  connections_.erase(std::find_if(connections_.begin(), connections_.end(), is_one));
  refuse(are_strangers ? "of another user that sent nothing" : "that sent nothing");
}

bool Listener::receive_all(pid_t pid, const OnFile& on_file) {
  for (Connection& connection : connections_)
    if (pid == 0 || connection.pid == pid)
      receive(connection, on_file);
  return std::erase_if(connections_, [](const Connection& from) { return !from.socket; }) > 0;
}

/// Receives the connection's message, if it has arrived, and closes the connection.
void Listener::receive(Connection& connection, const OnFile& on_file) {
  Message message;
  reserve_.close();
  const bool has_come = receive_message(connection.socket.get(), message);
  if (has_come)
    connection.socket.close();
  hold_reserve();
  if (has_come)
    take(connection, message, on_file);
}

void Listener::take(const Connection& from, Message& message, const OnFile& on_file) {
  // A process that sends a different reason each time must not fill our memory.
  constexpr std::size_t kMostReasons = 16;
  if (!from.is_own_user && message.text != key_)
    refuse("of another user");
  else if (message.fds.size() == 1)
    on_file(from.pid, std::move(message.fds.front()));
  else if (message.is_cut)
    refuse("because no descriptor was left (ulimit -n)");
  else if (message.fds.empty() && message.text.size() > 1 && refused_.size() < kMostReasons)
    refuse("of a process that is not recorded: " + message.text + ":");
  else
    refuse("that sent no shared memory");
}

bool has_process_ended(pid_t pid, const Fd& pidfd) {
  if (!pidfd)
    return ::kill(pid, 0) != 0 && errno == ESRCH;
  pollfd polled{pidfd.get(), POLLIN, 0};
  return ::poll(&polled, 1, 0) == 1;
}

}  // namespace pe::inprocess

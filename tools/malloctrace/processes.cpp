// SPDX-License-Identifier: MIT
#include "malloctrace/processes.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstring>
#include <optional>
#include <utility>
#include <variant>

#include "base/error.h"

namespace pe::malloctrace {
namespace {

/// Not to be guessed by other users.
std::string random_name() {
  std::array<unsigned char, 16> bytes{};
  if (::getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size()))
    throw_errno("getrandom", errno);
  std::string name = "malloctrace-";
  for (const unsigned char byte : bytes)
    name += fmt::format("{:02x}", byte);
  return name;
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
    throw_errno("socket for traced processes", errno);
  return listener;
}

struct Received {
  std::vector<Fd> fds;
  bool is_cut = false;  ///< there were more, and no room for them among our descriptors
  std::string reason;   ///< why the process sends none, if it says so
};

/// The descriptors of a message, or why there are none.  nullopt: nothing has come yet.
std::optional<Received> receive_fds(int socket) {
  constexpr std::size_t kMost = 8;
  alignas(cmsghdr) std::array<std::byte, CMSG_SPACE(kMost * sizeof(int))> control{};
  std::array<std::byte, 64> content{};
  iovec part{content.data(), content.size()};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  ssize_t n;
  do
    n = ::recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
  while (n < 0 && errno == EINTR);
  if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
    return std::nullopt;
  Received received;
  if (n < 0)
    return received;
  received.is_cut = (message.msg_flags & MSG_CTRUNC) != 0;
  for (cmsghdr* header = CMSG_FIRSTHDR(&message); header != nullptr;
       header = CMSG_NXTHDR(&message, header)) {
    if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS)
      continue;
    const std::size_t count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t i = 0; i < count; ++i) {
      int fd;
      std::memcpy(&fd, CMSG_DATA(header) + i * sizeof fd, sizeof fd);
      received.fds.emplace_back(fd);
    }
  }
  // One byte comes with descriptors, and says nothing.
  if (n > 1 && received.fds.empty())
    received.reason.assign(reinterpret_cast<const char*>(content.data()),
                           static_cast<std::size_t>(n));
  return received;
}

bool has_ended(pid_t pid, const Fd& pidfd) {
  if (!pidfd)
    return ::kill(pid, 0) != 0 && errno == ESRCH;
  pollfd polled{pidfd.get(), POLLIN, 0};
  return ::poll(&polled, 1, 0) == 1;
}

/// Whether a signal ended the process; false also where the kernel does not tell (before 6.15).
bool was_killed(const Fd& pidfd) {
  // linux/pidfd.h of Linux 6.15: struct pidfd_info, its first version.
  struct {
    std::uint64_t mask, cgroup;
    std::uint32_t ids[11];
    std::int32_t exit_code;
  } info{};
  static_assert(sizeof info == 64);
  constexpr std::uint64_t kExit = 1 << 3;
  constexpr unsigned long kGetInfo = _IOWR(0xff, 11, info);
  info.mask = kExit;
  return pidfd && ::ioctl(pidfd.get(), kGetInfo, &info) == 0 && (info.mask & kExit) != 0 &&
         WIFSIGNALED(info.exit_code);
}

}  // namespace

Processes::Processes(OnHeap on_end)
    : on_end_(std::move(on_end)),
      socket_name_(random_name()),
      events_(::epoll_create1(EPOLL_CLOEXEC)),
      listener_(listen_at(socket_name_)) {
  if (!events_)
    throw_errno("epoll_create", errno);
  listen_again(true);
}

void Processes::listen_again(bool is_wanted) {
  if (is_wanted == is_listening_)
    return;
  if (is_wanted)
    watch(listener_.get());
  else
    ::epoll_ctl(events_.get(), EPOLL_CTL_DEL, listener_.get(), nullptr);
  is_listening_ = is_wanted;
}

void Processes::watch(int fd) {
  epoll_event event{};
  event.events = EPOLLIN;
  ::epoll_ctl(events_.get(), EPOLL_CTL_ADD, fd, &event);
}

void Processes::pass() {
  while (pass_once() && !is_listening_) {
  }
}

/// Whether descriptors have become free.
bool Processes::pass_once() {
  accept_all();
  const bool has_received = receive_all(0);
  // Those that end are taken out first: what is called then may look at those that run.
  const auto first_ended = std::stable_partition(
      running_.begin(), running_.end(),
      [](const Running& process) { return !has_ended(process.pid, process.ended); });
  std::vector<Running> ended(std::make_move_iterator(first_ended),
                             std::make_move_iterator(running_.end()));
  running_.erase(first_ended, running_.end());
  for (const Running& process : ended)
    finish(process, Fate::kEnded);
  return has_received || !ended.empty();
}

bool Processes::hold_reserve() {
  if (!reserve_)
    reserve_ = Fd(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  return static_cast<bool>(reserve_);
}

void Processes::accept_all() {
  for (;;) {
    if (!hold_reserve())
      return listen_again(false);
    Fd socket(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!socket && (errno == EINTR || errno == ECONNABORTED))
      continue;
    // With no descriptors left, they wait until other processes have ended, and we try again each
    // time that there is something else to do.
    if (!socket)
      return listen_again(errno == EAGAIN || errno == EWOULDBLOCK);
    ucred peer{};
    socklen_t length = sizeof peer;
    if (::getsockopt(socket.get(), SOL_SOCKET, SO_PEERCRED, &peer, &length) != 0 ||
        peer.uid != ::geteuid()) {
      ++refused_["of another user"];
      continue;
    }
    if (only_pid_ != 0 && peer.pid != only_pid_)
      continue;  // begun by a program, which the library cannot tell from the command
    watch(socket.get());
    connections_.push_back({std::move(socket), peer.pid});
    // A process that connects anew, as another program, has sent before what the last one had to
    // send.  That must be received first, or the newer would be taken for the one that has ended.
    receive_all(peer.pid);
  }
}

/// From those of that process, 0: of all, who have sent; whether there were any.
bool Processes::receive_all(pid_t pid) {
  for (Connection& connection : connections_)
    if (pid == 0 || connection.pid == pid)
      receive(connection);
  return std::erase_if(connections_, [](const Connection& from) { return !from.socket; }) > 0;
}

/// Takes what it has sent, and closes it, if that has come.
void Processes::receive(Connection& connection) {
  reserve_.close();
  auto received = receive_fds(connection.socket.get());
  if (received)
    connection.socket.close();
  hold_reserve();
  if (!received)
    return;
  auto& [fds, is_cut, reason] = *received;
  // Who says something else each time fills no memory with it.
  constexpr std::size_t kMostReasons = 16;
  if (fds.size() == 1)
    begin(connection.pid, std::move(fds.front()));
  else if (!reason.empty() && refused_.size() < kMostReasons)
    ++refused_["of a process that is not traced: " + reason + ":"];
  else
    ++refused_[is_cut ? "for want of descriptors (ulimit -n)" : "that sent no shared memory"];
}

void Processes::begin(pid_t pid, Fd fd) {
  auto checked = heap::SharedFile::check(std::move(fd));
  if (const auto* why = std::get_if<std::string>(&checked)) {
    ++refused_["that sent " + *why];
    return;
  }
  finish_of_pid(pid);
  if (const auto early = ended_early_.find(pid); early != ended_early_.end()) {
    ++went_on_;
    vanished_ -= early->second ? 1 : 0;
    ended_early_.erase(early);
  }
  auto& file = std::get<heap::SharedFile>(checked);
  file.set_tick(tick_, kTickMs);
  Fd ended(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  if (ended)
    watch(ended.get());
  running_.push_back({pid, std::move(file), std::move(ended), tick_});
}

void Processes::finish_of_pid(pid_t pid) {
  const auto found = std::find_if(running_.begin(), running_.end(),
                                  [&](const Running& process) { return process.pid == pid; });
  if (found == running_.end())
    return;
  const Running before = std::move(*found);
  running_.erase(found);
  finish(before, Fate::kBeganAnother);
}

void Processes::finish(const Running& process, Fate fate) {
  if (const auto heap = heap::read_heap(process.file)) {
    const bool has_vanished =
        fate == Fate::kEnded && heap->header.has_ended == 0 && !was_killed(process.ended);
    vanished_ += has_vanished ? 1 : 0;
    if (fate == Fate::kEnded && !is_listening_)
      ended_early_[process.pid] = has_vanished;
    on_end_({process.pid, fate, *heap, process.began_tick});
  } else
    ++refused_["whose shared memory was damaged"];
}

void Processes::tick(std::uint32_t tick) {
  tick_ = tick;
  for (const Running& process : running_)
    process.file.set_tick(tick, kTickMs);
}

void Processes::for_each_running(const OnHeap& on_heap) const {
  for (const Running& process : running_)
    if (const auto heap = heap::read_heap(process.file))
      on_heap({process.pid, Fate::kRuns, *heap, process.began_tick});
}

void Processes::leave(const OnHeap& on_heap) {
  bool is_all = false;
  while (!is_all) {
    pass();
    for_each_running(on_heap);
    is_all = is_listening_ || running_.empty();
    running_.clear();
  }
  if (!is_listening_)
    ++refused_["for want of descriptors (ulimit -n)"];
}

}  // namespace pe::malloctrace

// Receives the shared memory (shared_file.h) of programs that carry one of our libraries.
//
// Programs are untrusted.  The listener accepts data only from processes of our own user, or from
// those that send the key.  It cannot reject other users before they send: a program of ours may
// have dropped privileges or created a user namespace.  Programs send as soon as they have
// connected.  So the listener keeps few silent connections, and even fewer of other users.
// SPDX-License-Identifier: MIT
#pragma once

#include <sys/types.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/fd.h"

namespace pe::inprocess {

class Listener {
 public:
  using OnFile = std::function<void(pid_t pid, Fd file)>;

  /// Starts to listen at an abstract socket whose name starts with `prefix`.  Throws Error.
  explicit Listener(std::string_view prefix);

  /// The socket's name, without the leading NUL.
  [[nodiscard]] const std::string& socket_name() const noexcept { return socket_name_; }
  /// A process of another user must send this key.  Such a process was started as ours and has
  /// dropped its privileges.
  [[nodiscard]] const std::string& key() const noexcept { return key_; }
  /// Readable when take_in() has work, or when a watched process has ended.
  [[nodiscard]] int fd() const noexcept { return events_.get(); }

  /// Makes fd() readable when the process ends, until the returned pidfd is closed.  The pidfd is
  /// empty before Linux 5.3.
  [[nodiscard]] Fd watch_end(pid_t pid) const;
  /// Accepts connections only while this number of descriptors is free for other work.  Other
  /// connections wait, as if no descriptor were free.
  void keep_free(std::size_t descriptors) noexcept { kept_free_ = descriptors; }
  /// From now on rejects connections of all other processes.
  void take_only(pid_t pid) noexcept { only_pid_ = pid; }

  /// Calls `on_file` with each received file, and with its process's pid in our pid namespace, in
  /// the order of connecting.  Connections wait until a descriptor is free.  Returns whether it
  /// served waiting connections, which frees their descriptors.
  bool take_in(const OnFile& on_file);
  /// False if no descriptor was free, so that connections may wait.
  [[nodiscard]] bool is_listening() const noexcept { return is_listening_; }

  /// Counts a rejected process, with the reason: "that sent no shared memory".
  void refuse(const std::string& why) { ++refused_[why]; }
  /// The number of rejected processes, by reason.
  [[nodiscard]] const std::map<std::string, std::uint64_t>& refused() const noexcept {
    return refused_;
  }

  struct Message;  ///< for listener.cpp

  /// The maximum number of silent connections: of our own user and root, and of other users.
  static constexpr std::size_t kMostSilent = 256, kMostSilentStrangers = 16;

 private:
  struct Connection {
    Fd socket;
    pid_t pid;
    bool is_own_user;
    bool is_stranger;  ///< neither our own user nor root
  };

  void watch(const Fd& other) const;
  void listen_again(bool is_wanted);
  bool hold_reserve();
  void bound_silent(bool are_strangers);
  void accept_all(const OnFile& on_file);
  /// Receives from the connections of process `pid`, or from all if it is 0.  Returns whether any
  /// had sent.
  bool receive_all(pid_t pid, const OnFile& on_file);
  void receive(Connection& connection, const OnFile& on_file);
  void take(const Connection& from, Message& message, const OnFile& on_file);

  std::string socket_name_, key_;
  Fd events_, listener_;
  /// A spare descriptor.  Closed while a message is received, so that the received file finds a
  /// free descriptor.
  Fd reserve_;
  bool is_listening_ = false;  ///< events_ watches listener_
  std::size_t kept_free_ = 0;
  pid_t only_pid_ = 0;                   ///< 0: all
  std::vector<Connection> connections_;  ///< silent ones, in the order of connecting
  std::map<std::string, std::uint64_t> refused_;
};

/// `pidfd` is the result of Listener::watch_end().
bool has_process_ended(pid_t pid, const Fd& pidfd);

/// Removes the processes that have ended, and returns them in the same order.
template <typename Process>
std::vector<Process> take_ended(std::vector<Process>& running) {
  const auto first = std::stable_partition(
      running.begin(), running.end(), [](const Process& process) { return !process.has_ended(); });
  std::vector<Process> ended(std::make_move_iterator(first),
                             std::make_move_iterator(running.end()));
  running.erase(first, running.end());
  return ended;
}

}  // namespace pe::inprocess

// Where programs that carry one of our libraries send the memory that they share (shared_file.h).
//
// They are untrusted: only processes of our own user, or such as know the key, are listened to.
// Whose user a program may be cannot be told before it speaks: it may have given rights away, or
// have begun a user namespace of its own.  Programs speak as soon as they have connected, so that
// of those who are silent few are kept, and fewest of other users.
// SPDX-License-Identifier: MIT
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/fd.h"

namespace pe::inprocess {

class Listener {
 public:
  using OnFile = std::function<void(pid_t pid, Fd file)>;

  /// Begins to listen at an abstract socket whose name begins with `prefix`.  Throws Error.
  explicit Listener(std::string_view prefix);

  /// Its name, without the NUL before it.
  [[nodiscard]] const std::string& socket_name() const noexcept { return socket_name_; }
  /// What a process has to send along if it runs as another user: of a program that was begun as
  /// ours and has given its rights away.
  [[nodiscard]] const std::string& key() const noexcept { return key_; }
  /// Readable when there is something for take_in(), or a watched descriptor is.
  [[nodiscard]] int fd() const noexcept { return events_.get(); }

  /// Wakes whoever waits for fd() when `other` can be read.  Ends when that is closed.
  void watch(int other) const;
  /// Nobody is taken in where fewer descriptors than that would be left for other work: they wait
  /// as those do who find none.
  void keep_free(std::size_t descriptors) noexcept { kept_free_ = descriptors; }
  /// From now on what other processes send is not taken in.
  void take_only(pid_t pid) noexcept { only_pid_ = pid; }

  /// Calls `on_file` with each file that has come, and the pid of its process as we see it, in the
  /// order of connecting.  Who finds no descriptor left waits, however long.  Whether anything has
  /// come, so that descriptors are free again.
  bool take_in(const OnFile& on_file);
  /// False: there was no descriptor left, and some may wait.
  [[nodiscard]] bool is_listening() const noexcept { return is_listening_; }

  /// Adds one to those that were not taken in: "that sent no shared memory".
  void refuse(const std::string& why) { ++refused_[why]; }
  /// How many were not, each with the reason.
  [[nodiscard]] const std::map<std::string, std::uint64_t>& refused() const noexcept {
    return refused_;
  }

  struct Message;  ///< for listener.cpp

  /// Of those who say nothing, so many are kept at a time: of our own user and root, and of others.
  static constexpr std::size_t kMostSilent = 256, kMostSilentStrangers = 16;

 private:
  struct Connection {
    Fd socket;
    pid_t pid;
    bool is_own_user;
    bool is_stranger;  ///< nor root
  };

  void listen_again(bool is_wanted);
  bool hold_reserve();
  void bound_silent(bool are_strangers);
  void accept_all(const OnFile& on_file);
  /// From those of that process, 0: of all, who have sent; whether there were any.
  bool receive_all(pid_t pid, const OnFile& on_file);
  void receive(Connection& connection, const OnFile& on_file);
  void take(const Connection& from, Message& message, const OnFile& on_file);

  std::string socket_name_, key_;
  Fd events_, listener_;
  /// Given up while shared memory is received, so that what has been sent finds a descriptor.
  Fd reserve_;
  bool is_listening_ = false;  ///< events_ has listener_
  std::size_t kept_free_ = 0;
  pid_t only_pid_ = 0;                   ///< 0: all
  std::vector<Connection> connections_;  ///< in the order of connecting; have not sent yet
  std::map<std::string, std::uint64_t> refused_;
};

}  // namespace pe::inprocess

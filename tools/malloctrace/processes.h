// The traced processes.  Each sends a descriptor of the memory that it shares, and malloctrace
// gives it the time.
//
// The processes are untrusted: their data is checked (recording/inprocess/listener.h says who may
// send).  A process that starts another program (exec) sends a new descriptor; the program before
// has then ended.
// SPDX-License-Identifier: MIT
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/fd.h"
#include "malloctrace/heap/heap.h"
#include "malloctrace/heap/shared_file.h"
#include "recording/inprocess/listener.h"

namespace pe::malloctrace {

enum class Fate : std::uint8_t {
  kRuns,
  kEnded,
  kBeganAnother,  ///< another program, by exec: the process runs on, or has run on
};

/// The heap of a process: when it ended, or now if it still runs.
struct HeapOfProcess {
  pid_t pid;  ///< as we see it
  Fate fate;
  const heap::Heap& heap;
  std::uint32_t began_tick = 0;  ///< when we heard of it; none of its data can be older
};
using OnHeap = std::function<void(const HeapOfProcess&)>;

class Processes {
 public:
  static constexpr std::uint32_t kTickMs = 100;

  /// Starts to listen.  Calls `on_end` with each process that has ended.  Throws Error.
  explicit Processes(OnHeap on_end);

  /// The listener that the processes connect to.
  [[nodiscard]] const inprocess::Listener& listener() const noexcept { return listener_; }
  /// Readable when there is something for pass() to do.
  [[nodiscard]] int fd() const noexcept { return listener_.fd(); }

  /// From now on, other processes are not accepted.
  void take_only(pid_t pid) noexcept { listener_.take_only(pid); }

  /// Takes a process that has not connected, with the memory that it shares.
  void take_in(pid_t pid, Fd fd) { begin(pid, std::move(fd)); }
  /// Accepts new processes and finishes those that have ended.  A process that finds no descriptor
  /// left waits until another one has ended; it counts all the while.
  void pass();
  /// Gives all processes the time since the start, in units of kTickMs.
  void tick(std::uint32_t tick);

  /// Calls `on_heap` for each running process, as it is now, in the order in which the processes
  /// started.
  void for_each_running(const OnHeap& on_heap) const;

  /// Does the same, also for processes that got no descriptor so far.  Afterwards none of them gets
  /// the time, and none is read when it ends.
  void leave(const OnHeap& on_heap);

  /// Returns how many have ended neither by exit nor, if the kernel reports that, by a signal.
  /// Most of them continued as a program that did not connect.
  [[nodiscard]] std::uint64_t vanished() const noexcept { return vanished_; }

  /// Returns how many were counted as ended, but had started another program that had to wait for a
  /// descriptor.
  [[nodiscard]] std::uint64_t went_on() const noexcept { return went_on_; }

  [[nodiscard]] std::size_t running() const noexcept { return running_.size(); }
  /// The refused connections, counted by reason.
  [[nodiscard]] const std::map<std::string, std::uint64_t>& refused() const noexcept {
    return listener_.refused();
  }

 private:
  struct Running {
    pid_t pid;
    heap::SharedFile file;
    Fd ended;  ///< a pidfd, readable once the process has ended; none on kernels before 5.3
    std::uint32_t began_tick;

    [[nodiscard]] bool has_ended() const { return inprocess::has_process_ended(pid, ended); }
  };

  bool pass_once();
  void begin(pid_t pid, Fd fd);
  void finish_of_pid(pid_t pid);
  void finish(const Running& process, Fate fate);

  OnHeap on_end_;
  inprocess::Listener listener_;
  std::vector<Running> running_;
  std::uint64_t vanished_ = 0, went_on_ = 0;
  /// Processes that ended while others waited for descriptors: one of the others may be the next
  /// program of the same process.  The value is whether it counted as vanished.
  std::map<pid_t, bool> ended_early_;
  std::uint32_t tick_ = 0;
};

}  // namespace pe::malloctrace

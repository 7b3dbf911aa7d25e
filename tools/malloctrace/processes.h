// The processes that are traced: each sends a descriptor of the memory that it shares, and is told
// the time.
//
// They are untrusted: what they send is checked (see inprocess/listener.h for who may).  A process
// that begins another program (exec) sends anew; the one before has ended then.
// SPDX-License-Identifier: MIT
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/fd.h"
#include "inprocess/listener.h"
#include "malloctrace/heap/heap.h"
#include "malloctrace/heap/shared_file.h"

namespace pe::malloctrace {

enum class Fate : std::uint8_t {
  kRuns,
  kEnded,
  kBeganAnother,  ///< program, by exec: the process runs, or has run, on
};

/// What a process had when it ended, or of one that runs, now.
struct HeapOfProcess {
  pid_t pid;  ///< as we see it
  Fate fate;
  const heap::Heap& heap;
  std::uint32_t began_tick = 0;  ///< when we heard of it; nothing of it can be older
};
using OnHeap = std::function<void(const HeapOfProcess&)>;

class Processes {
 public:
  static constexpr std::uint32_t kTickMs = 100;

  /// Begins to listen.  `on_end` is called with each process that has ended.  Throws Error.
  explicit Processes(OnHeap on_end);

  /// Where they are listened to.
  [[nodiscard]] const inprocess::Listener& listener() const noexcept { return listener_; }
  /// Readable when there is something for pass() to do.
  [[nodiscard]] int fd() const noexcept { return listener_.fd(); }

  /// From now on what other processes send is not taken in.
  void take_only(pid_t pid) noexcept { listener_.take_only(pid); }

  /// Takes in what has come and who has ended.  Who finds no descriptor left waits until another
  /// has ended, counting all the while.
  void pass();
  /// Tells all processes the time since the beginning, in kTickMs.
  void tick(std::uint32_t tick);

  /// Those that run, as they are now, in the order in which they began.
  void for_each_running(const OnHeap& on_heap) const;

  /// The same, and those for whom there were no descriptors.  None is told the time after that, nor
  /// read when it ends.
  void leave(const OnHeap& on_heap);

  /// How many have ended neither by exit nor, where the kernel tells that, by a signal: most went
  /// on as a program that did not report.
  [[nodiscard]] std::uint64_t vanished() const noexcept { return vanished_; }

  /// How many that were said to have ended had begun another program, which had to wait for a
  /// descriptor.
  [[nodiscard]] std::uint64_t went_on() const noexcept { return went_on_; }

  [[nodiscard]] std::size_t running() const noexcept { return running_.size(); }
  /// Those that sent something else, each with the reason.
  [[nodiscard]] const std::map<std::string, std::uint64_t>& refused() const noexcept {
    return listener_.refused();
  }

 private:
  struct Running {
    pid_t pid;
    heap::SharedFile file;
    Fd ended;  ///< a pidfd, readable then; none on kernels before 5.3
    std::uint32_t began_tick;
  };

  bool pass_once();
  void begin(pid_t pid, Fd fd);
  void finish_of_pid(pid_t pid);
  void finish(const Running& process, Fate fate);

  OnHeap on_end_;
  inprocess::Listener listener_;
  std::vector<Running> running_;
  std::uint64_t vanished_ = 0, went_on_ = 0;
  /// Those that ended while others waited for descriptors, among which another program of theirs
  /// may be; whether they counted as vanished.
  std::map<pid_t, bool> ended_early_;
  std::uint32_t tick_ = 0;
};

}  // namespace pe::malloctrace

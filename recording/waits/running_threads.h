// Counts the threads of the target that run, and finds the times in which none does, from switches
// in the order of time.  Also the CPU time of each thread since its last sample: a sample then
// stands for exactly that time, also of a thread that runs for less than a period.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "recording/waits/wait_tracker.h"

namespace pe::waits {

class RunningThreads {
 public:
  /// A time in which no thread ran, up to now.
  struct Silence {
    std::uint64_t since_ns = 0;  ///< 0: one ran
    bool is_lost = false;        ///< records of that time were lost: one may have run
  };
  /// CPU time after the last sample of a thread.
  struct Rest {
    std::uint32_t pid = 0, tid = 0;
    std::uint64_t ns = 0;
    Stack stack = {};  ///< of that sample; empty: there was none
  };

  /// From now on there is silence.
  void begin(std::uint64_t now_ns) noexcept { silent_ns_ = now_ns; }
  /// A thread has come to a CPU, or was found running.
  Silence start(std::uint32_t pid, std::uint32_t tid, std::uint64_t now_ns);
  void stop(std::uint32_t tid, std::uint64_t now_ns);
  /// A thread that runs was sampled: returns its CPU time since the last sample, or `period_ns` if
  /// it was not known to run.
  std::uint64_t sample(std::uint32_t pid, std::uint32_t tid, std::uint64_t now_ns,
                       std::uint64_t period_ns);
  /// Keeps the stack of that sample.
  void keep(std::uint32_t tid, const Stack& stack) { threads_[tid].stack = stack; }
  /// A thread has ended.
  Rest end(std::uint32_t tid, std::uint64_t now_ns);
  /// A thread executes a program.  It takes the number of the process's first thread; the others
  /// have ended.
  void execute(std::uint32_t pid, std::uint32_t tid, std::uint64_t now_ns);
  /// Switches up to `until_ns` may be missing: no thread is known to run until it is seen to.
  void lose(std::uint64_t now_ns, std::uint64_t until_ns);
  /// The recording has ended: returns the rests of all threads, in the order of their numbers.
  std::vector<Rest> finish(std::uint64_t now_ns);

  [[nodiscard]] std::size_t count() const noexcept { return running_.size(); }
  /// Returns the silence that lasts.
  [[nodiscard]] Silence silence() const noexcept {
    return {silent_ns_, silent_ns_ != 0 && silent_ns_ <= lost_until_ns_};
  }

 private:
  struct Thread {
    std::uint32_t pid = 0;
    std::uint64_t since_ns = 0;  ///< it runs since then, or was sampled; 0: it does not run
    std::uint64_t unsampled_ns = 0;
    Stack stack = {};
  };

  std::unordered_map<std::uint32_t, Thread> threads_;  ///< by tid
  std::vector<std::uint32_t> running_;                 ///< at most one for each CPU
  std::uint64_t silent_ns_ = 0;                        ///< 0: a thread runs
  std::uint64_t lost_until_ns_ = 0;
};

}  // namespace pe::waits

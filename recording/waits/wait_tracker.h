// Turns switches of threads, in order of time, into waits: how long each was, and on which stack.
//
// A wait lasts from the record that a thread has stopped running to the record that it runs again.
// Its stack is that of the sample right before the first record.  If records were lost, a wait that
// may be two is dropped and counted.
// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <span>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "recording/waits/choice.h"
#include "stream/records/sample.h"

namespace pe::waits {

/// Returns numbers as a record holds them.
inline std::string_view text_of(std::span<const std::uint64_t> numbers) {
  return {reinterpret_cast<const char*>(numbers.data()), numbers.size_bytes()};
}

/// Where a thread was when it stopped running.
struct Stack {
  std::uint64_t ip = 0;
  std::uint16_t misc = 0;  ///< of the sample: what `ip` is, and how the walk ended
  std::uint32_t cpu = 0;
  std::vector<std::uint64_t> chain = {};  ///< as in the sample; empty: unknown
};

/// Returns the stack of a sample.
Stack stack_of(const stream::Sample& sample, std::uint16_t misc);
/// The idle thread of a CPU, or a thread that is gone: the kernel has no number for it.
constexpr bool is_nobody(std::uint32_t tid) { return tid == 0 || tid == 0xffffffff; }

/// The thread or interrupt that ended a wait, and its stack at that time.
struct WokenBy {
  std::uint32_t pid = 0, tid = 0;  ///< pid 0: see stream::EndOfWait
  Stack stack = {};
};

struct Wait {
  std::uint32_t pid = 0, tid = 0;
  std::uint64_t end_ns = 0;
  std::uint64_t length_ns = 0;
  const Stack& stack;          ///< valid until the receiver returns
  bool is_unfinished = false;  ///< the end of the recording cut it off
  /// The waker, the one that ended a wait of the waker meanwhile, and so on.  Valid until the
  /// receiver returns; empty: unknown.
  std::span<const WokenBy> wakers = {};
  std::uint64_t lock = 0;    ///< as in unwind::SumKey
  std::uint64_t weight = 0;  ///< see stream::WaitKind
  std::uint64_t event = 0;   ///< an id; 0: a wait
  /// From then on it waited for a CPU; that is known only of kinds.
  std::uint64_t woken_ns = 0;
};

struct WaitCounts {
  std::uint64_t samples = 0;   ///< of CPU time, reported
  std::uint64_t waits = 0;     ///< reported
  std::uint64_t total_ns = 0;  ///< of these
  /// Parts of that, by stream::WaitKind, if it is known.
  std::array<std::uint64_t, stream::kWaitKinds> kind_ns = {};
  std::uint64_t unfinished = 0;    ///< of these
  std::uint64_t stackless = 0;     ///< of these: the sample with their stack was lost
  std::uint64_t stateless = 0;     ///< left out: states were asked for, and its state was lost
  std::uint64_t dropped = 0;       ///< their start or end was lost
  std::uint64_t timeouts = 0;      ///< for locks: nobody released the lock in time
  std::uint64_t signals = 0;       ///< for locks: a signal ended them
  std::uint64_t began_before = 0;  ///< started before the recording: length and stack are unknown
};

class WaitTracker {
 public:
  using OnWait = std::function<void(const Wait&)>;
  WaitTracker(WaitChoice choice, OnWait on_wait);

  /// There are no samples: waits without a stack are not a loss.
  void expect_no_stacks() noexcept { has_samples_ = false; }
  /// A thread is about to stop running.  `state` is its letter in ps(1); '?': unknown.  Returns its
  /// stack, which the caller may change; null: there is no such thread.
  Stack* sample(const stream::Sample& sample, std::uint16_t misc, char state);
  /// Sets what the thread of the last sample waits for.  A preempted thread ignores it.
  void set_kind(std::uint32_t tid, stream::WaitKind kind) { threads_[tid].kind = kind; }
  void switched(const stream::SwitchRecord& change);
  /// A thread may run on.
  void woken(std::uint32_t tid, std::uint64_t time_ns);
  /// A thread waits since before the recording.
  void waits_since(std::uint32_t pid, std::uint32_t tid, std::uint64_t began_ns,
                   stream::WaitKind kind);
  /// Threads that start, end, or start another program.
  void forked(std::uint32_t tid);
  /// As above, and also counts how long the new thread waits for its first CPU.
  void forked(std::uint32_t pid, std::uint32_t tid, std::uint64_t time_ns);
  void ended(std::uint32_t tid, std::uint64_t time_ns);
  void began_program(std::uint32_t tid);
  /// Switches up to `until_ns` may be missing.
  void lost_switches(std::uint64_t until_ns);
  /// Reports the waits that have not ended.
  void finish(std::uint64_t end_ns);

  [[nodiscard]] const WaitCounts& counts() const noexcept { return counts_; }
  [[nodiscard]] bool has_seen(std::uint32_t tid) const { return threads_.contains(tid); }
  /// How many threads were seen.
  [[nodiscard]] std::size_t threads() const noexcept { return threads_.size(); }

 private:
  enum class Phase : std::uint8_t { kUnknown, kNew, kRunning, kWaiting, kEnded };
  struct Thread {
    Phase phase = Phase::kUnknown;
    bool has_stack = false;    ///< of its last sample, until it runs again
    bool is_doubtful = false;  ///< switches of the wait may be missing
    bool is_preempted = false;
    bool is_stackless = false;  ///< the sample of the wait is missing
    bool is_presumed = false;   ///< its wait began before the recording
    char state = '?';
    stream::WaitKind kind = stream::WaitKind::kOther;
    std::uint32_t pid = 0;
    std::uint64_t out_ns = 0;
    std::uint64_t woken_ns = 0;  ///< 0: not yet
    Stack stack;
  };

  void begin_wait(Thread& thread, const stream::SwitchRecord& change);
  void end_wait(Thread& thread, std::uint32_t tid, std::uint64_t end_ns, bool is_unfinished);
  [[nodiscard]] bool is_chosen(const Thread& thread, std::uint64_t length_ns) const;

  WaitChoice choice_;
  OnWait on_wait_;
  bool has_samples_ = true;
  std::unordered_map<std::uint32_t, Thread> threads_;  ///< by tid
  std::uint64_t doubtful_until_ns_ = 0;
  WaitCounts counts_;
};

}  // namespace pe::waits

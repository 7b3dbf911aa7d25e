// Stops one thread, copies its registers and its stack, and lets it continue.  All of this must run
// in the one thread that traces.
//
// PTRACE_INTERRUPT stops without a signal that the target could see.  A stopped thread is resumed
// as soon as the copy is complete.  Walking the stack takes a hundred times as long, because it may
// have to read unwind tables from files.  So it happens elsewhere.
//
// The tracer asks a running thread to stop from the thread's own CPU.  A request from another CPU
// takes a while to arrive.  A thread that happens to enter the kernel meanwhile stops in the
// kernel.  The delay was 30 us, with system calls every 80 us: half of all samples were in a call
// that takes 3 % of the time.  While we have its CPU, the thread is only ready to run, and stops
// where it was.  But if another CPU is idle, the kernel may move the thread to that CPU when we
// arrive.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/budget.h"
#include "recording/ptrace/cpu_place.h"
#include "recording/ptrace/thread_registry.h"
#include "recording/request.h"
#include "recording/stream/engine_records.h"
#include "recording/stream/mapped_bytes.h"
#include "recording/thread_state.h"

namespace pe::recording {

class ThreadStopper {
 public:
  /// The arguments must outlive this.  It also reads the stacks of the interpreters in `scripts`.
  /// Reads of stacks whose end is not known draw on `budget`, beyond the usual copy.
  ThreadStopper(const Request& request, languages::ScriptReader& scripts, Budget& budget);

  /// Waits until `time_ns`, or until a thread stops or ends.
  void wait_until(std::uint64_t time_ns);
  /// Migrates to the thread's CPU to preempt it; false if it is no longer runnable.
  bool preempt(TracedThread& thread);
  /// Leaves the CPU of preempt().
  void leave_cpu() { place_.stand_anywhere(); }
  /// Returns the latest time at which a thread that is found stopped has stopped.  It woke us, but
  /// we had to wait for a CPU.
  [[nodiscard]] std::uint64_t stop_began_ns() const;

  /// Copies a stopped thread's registers and stacks, and lets it continue.  Returns nullopt if it
  /// has been killed meanwhile.  The stacks are valid until the next call of any function below.
  std::optional<CopiedSample> copy(const TracedThread& thread);
  /// After a full copy: finds out how large it could have been, for the next time.
  void look_up_stack(TracedThread& thread, const CopiedSample& sample);
  /// Returns whether a thread is blocked where it was at its last sample, with the same stack.
  bool is_unchanged(const TracedThread& thread);

 private:
  std::size_t copy_stack(const TracedThread& thread, const CopiedSample& sample);
  bool may_read_more(std::uint32_t pid, double bytes, std::uint64_t now_ns);
  std::size_t copy_frames(const TracedThread& thread, const CopiedSample& sample,
                          std::size_t copied);

  const Request& request_;
  languages::ScriptReader& scripts_;
  Budget& budget_;
  stream::ThreadFiles own_files_;
  CpuPlace place_;
  MappedRanges mapped_;  ///< for threads' stacks
  std::vector<std::byte> copy_;
  bool is_short_ = false;             ///< copy_ was too small for the last stack
  std::uint64_t thread_pointer_ = 0;  ///< of the last thread that was copied
  std::uint64_t woken_ns_ = 0;        ///< when our last wait ended
  std::uint64_t own_waited_ns_ = 0;   ///< our total wait for a CPU before that
};

}  // namespace pe::recording

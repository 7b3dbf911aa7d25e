// What the kernel's unwinder writes and user space reads: stacks, samples, sums, counts.  C and
// C++.
//
// Stacks stand once each in an array of 64-byte blocks; a stack's number is that of its first.
//
//     word 0      bits 0-15 how many frames, 16-23 StackStop, bit 24 whether it is a kernel stack
//     words 1...  the frames, the innermost first: of user stacks as in Frame
//
// So do wakers: who ended a wait.  They have bit 25 of word 0, and two words for frames:
//
//     word 1      tgid << 32 | tid: of the current thread, which may have been interrupted by who
//                 wakes; 0: the idle task was
//     word 2      number of the user stack << 32 | number of the kernel stack
//
// Two stacks never have the same number: a hash only finds the one to compare with.
// SPDX-License-Identifier: MIT
#pragma once

#include "unwind/kernel/layout.h"

#ifdef __cplusplus
namespace pe::unwind {
#endif

enum {
  kMaxFrames = 4096,
  kBlockWords = 8,
  kPassedStackBytes = 32768,
  kPassedRegisters = 17,
  kMaxKernelFrames = 127,  ///< kernel.perf_event_max_stack's default
};

/// Why a stack has no more frames.  The first six are Stop's, with its numbers.
enum StackStop {
  kStopEndOfStack,
  kStopNoUnwindInfo,
  kStopNotReadable,  ///< the stack's memory is not there, or not in core
  kStopNoProgress,
  kStopBadReturnAddress,
  kStopTooDeep,
  kStopUnsupported,     ///< a row that only user space can follow
  kStopUnknownProcess,  ///< no mappings of it are known (yet); one frame
  kStopStaleMappings,   ///< those known are from before its last exec; one frame
  kStopChanged,         ///< its mappings were changed while it was walked; one frame
  kStopUnmapped,        ///< an address in no mapping that is known: perhaps too new, or left out
  kStopNot64Bit,        ///< a 32-bit process; one frame
  kStackStopCount,
};

enum {
  kHeaderStopShift = 16,
  kHeaderStopMask = 0xff,
  kHeaderKernel = 1 << 24,
  kHeaderWaker = 1 << 25
};

struct StackBlock {
  uint64_t words[kBlockWords];
};

enum RecordKind {
  kRecordSample,      ///< a SampleRecord alone
  kRecordWholeStack,  ///< ... and its user stack, as words: there is no room for its number
  kRecordPassedOn,    ///< ... kPassedRegisters registers and a piece of the stack
  kRecordWaitEnded,   ///< alone: see SampleRecord::cookie
};

/// Which samples, and switches, come with registers and a piece of the stack.
enum PassOn {
  kPassNothing,
  /// Those whose stack the kernel could not walk to its end, but for ends that are the same for
  /// everybody: kStopTooDeep, kStopNotReadable; of switches, those only that user space may know
  /// more of.
  kPassUnfinished,
  kPassAll,
};

/// One sample of the counter, or a switch that is passed on, in the ring.  Such a switch is in no
/// sum: a record tells that the thread runs again, unless that is not within the wanted time.
struct SampleRecord {
  uint32_t kind;  ///< RecordKind
  uint32_t cpu;
  uint64_t time_ns;  ///< CLOCK_MONOTONIC
  uint32_t tgid, tid;
  uint32_t user_stack;    ///< 0: none, or it comes with the record
  uint32_t kernel_stack;  ///< 0: none, or no room
  uint64_t ip;            ///< what was interrupted, in the kernel perhaps
  uint64_t period;
  /// Given when attaching.  Of kRecordWaitEnded: time_ns of the kRecordPassedOn of the same thread,
  /// since when it was off its CPU, for `period` ns; `ip` is the number of the waker.
  uint64_t cookie;
  uint32_t is_kernel_mode;
  /// Of what follows: words of the stack, or bytes of the stack's piece, which begins at the stack
  /// pointer.
  uint32_t length;
  /// Of what follows that: frames of the kernel's stack, where they do not have a number.
  uint32_t kernel_frames;
  uint32_t stop;  ///< StackStop of the user's stack, if there is one
};

/// What is told apart by sums of switches.
struct SumKey {
  uint32_t tgid, tid;
  uint32_t user_stack;  ///< 0: a kernel thread, or no room
  uint32_t kernel_stack;
  uint32_t waker;  ///< 0: none was seen, or no room
  /// TASK_... of include/linux/sched.h below 256, 128 for TASK_REPORT_IDLE; 0: was preempted, or
  /// yielded.
  uint32_t state : 8;
  uint32_t program : 24;  ///< another one with each program that the process executes
};

struct Sum {
  uint64_t ns;
  uint64_t count;
  uint64_t last_ns;  ///< CLOCK_MONOTONIC, when the last of them was over
};

/// A thread that is off its CPU.
struct Outstanding {
  struct SumKey key;
  uint64_t since_ns;  ///< CLOCK_MONOTONIC
};

/// Of one CPU, since loading.
struct Counts {
  uint64_t stacks;                  ///< user stacks asked for
  uint64_t reused;                  ///< ... that were the thread's last ones still
  uint64_t frames;                  ///< of the others
  uint64_t stops[kStackStopCount];  ///< of the others
  uint64_t no_storage;              ///< threads that could not be remembered
  uint64_t stacks_full;             ///< stacks that had no room
  uint64_t sums_full;               ///< switches that had no room
  uint64_t sums_full_ns;            ///< their time
  /// Threads that left a CPU for the second time, without having been seen to come back to one
  /// (tracing may be off there).  They are taken to have done so once, as long ago as they have run
  /// since; how long they were off it by that.
  uint64_t missed;
  uint64_t missed_ns;
  uint64_t ring_full;       ///< samples that had no room, and switches that could not be passed on
  uint64_t execs_full;      ///< execs that could not be remembered: mappings may be stale
  uint64_t targets_full;    ///< forked processes that could not be followed
  uint64_t wrong_reuse;     ///< with check_reuse only: reused, and walked anew another
  uint64_t kernel_unwound;  ///< kernel stacks of switches that the kernel unwound
  uint64_t kernel_reused;   ///< ... that were the thread's last ones still
};

#ifdef __cplusplus
static_assert(sizeof(SampleRecord) == 72 && sizeof(SumKey) == 24 && sizeof(Outstanding) == 32);
}  // namespace pe::unwind
#endif

// The data that the kernel's unwinder writes and user space reads: stacks, samples, sums, counts.
// For C and C++.
//
// Each different stack is stored once, in an array of 64-byte blocks.  A stack's number is that of
// its first block.
//
//     word 0      bits 0-15 number of frames, 16-23 StackStop, bit 24 whether it is a kernel stack
//     words 1...  the frames, the innermost first: of user stacks as in Frame
//
// Wakers, which end waits, are stored in the same way.  They have bit 25 of word 0, and two words
// for each waker in place of frames.  The first ended the wait, the second ended the last wait of
// the first, and so on:
//
//     word 1      tgid << 32 | tid: of the current thread, which the real waker may have
//                 interrupted; 0: the idle task; see EndOfWait
//     word 2      number of the user stack << 32 | number of the kernel stack
//
// Two different stacks never have the same number: a hash only finds the one to compare with.
//
// The array has two halves of a power of two of blocks.  One is in use, and the numbers in it are
// in a range whose lowest bits are the place in the array.  When it is nearly full, user space
// chooses another range of numbers, whose places are in the other half.  Then stacks get new
// numbers, as if none were known.  Old numbers remain readable until the next renewal; user space
// copies the stacks that the states of threads still refer to.  The array of sums is renewed
// together with it, in the same way.
// SPDX-License-Identifier: MIT
#pragma once

#include "recording/bpf/layout.h"

#ifdef __cplusplus
namespace pe::unwind {
#endif

enum {
  kMaxFrames = 4096,
  kBlockWords = 8,
  kPassedStackBytes = 61440,  ///< whole pages; the size of a record has 16 bits
  kPassedRegisters = 17,
  kMaxKernelFrames = 127,   ///< the default of kernel.perf_event_max_stack
  kMaxScriptFrames = 8192,  ///< of an interpreter
  kMaxWakers = 4,
};

/// Thread numbers of wakers with process 0, which are not threads.
enum EndOfWait {
  kEndedByInterrupt,
  kEndedByTimeout,  ///< with_locks: the wait had a limit, and nobody released the lock
  kEndedBySignal,   ///< with_locks
};

/// Why a stack has no more frames.  The first six have the numbers of Stop.
enum StackStop {
  kStopEndOfStack,
  kStopNoUnwindInfo,
  kStopNotReadable,  ///< the stack's memory is not mapped, or not in core
  kStopNoProgress,
  kStopBadReturnAddress,
  kStopTooDeep,
  kStopUnsupported,     ///< a row that only user space can follow
  kStopUnknownProcess,  ///< no mappings of the process are known (yet); one frame
  kStopStaleMappings,   ///< the known mappings are older than its last exec; one frame
  kStopChanged,         ///< its mappings were changed while it was walked; one frame
  kStopUnmapped,        ///< an address in no known mapping: perhaps too new, or left out
  kStopNot64Bit,        ///< a 32-bit process; one frame
  kStopOutOfTime,       ///< a limit of the walk's time
  kStackStopCount,
};

enum {
  kHeaderStopShift = 16,
  kHeaderStopMask = 0xff,
  kHeaderKernel = 1 << 24,
  kHeaderWaker = 1 << 25,
  kHeaderScriptCut = 1 << 26,  ///< outer frames of the interpreter are missing
  kHeaderScriptShift = 32,     ///< number of the last words: an interpreter's frames, the tgid
};

struct StackBlock {
  uint64_t words[kBlockWords];
};

enum RecordKind {
  kRecordSample,      ///< only a SampleRecord
  kRecordWholeStack,  ///< ... and its user stack, as words: there is no room for its number
  kRecordPassedOn,    ///< ... kPassedRegisters registers and a piece of the stack
  /// The same for the thread that ends a wait, at the time of EndedWait::copied_ns.
  kRecordPassedWaker,
  kRecordWaitEnded,  ///< ... and an EndedWait
  /// ... and the stack in the thread's interpreter: two words for each frame, as in
  /// recording/signal/script_words.h.  The sample itself follows, with the same thread and time.
  /// `stop` is kStopTooDeep if outer frames are missing, `ip` is the interpreter's
  /// ProcessScript::runtime, `cookie` is its ProcessScript::binary, and `period` is its
  /// ProcessScript::parent.
  /// Of switches and wakers, the stack is part of `user_stack`, which is new, and not in the
  /// record.
  kRecordScript,
  kRecordCommandLine,  ///< a CommandLineRecord: a process has executed a program
  /// Only a SampleRecord: the sample has the stack of the thread's next one.  With samples of user
  /// code alone, `ip` is in user code.
  kRecordThinned,
};

/// Selects the samples, and switches, that come with registers and a piece of the stack.
enum PassOn {
  kPassNothing,
  /// Those whose stack the kernel could not walk to its end.  Stops that are the same for every
  /// unwinder do not count: kStopTooDeep, kStopNotReadable.  Of switches, only those that user
  /// space may walk further.
  kPassUnfinished,
  kPassAll,
};

/// One sample of the counter, or a switch or a waker that is forwarded, in the ring.  No sum
/// contains a wait of which either was forwarded.  A kRecordWaitEnded reports its end, unless its
/// time is outside the wanted range.
struct SampleRecord {
  uint32_t kind;  ///< RecordKind
  uint32_t cpu;
  uint64_t time_ns;  ///< CLOCK_MONOTONIC
  uint32_t tgid, tid;
  uint32_t user_stack;    ///< 0: none, or it comes with the record
  uint32_t kernel_stack;  ///< 0: none, or no room
  uint64_t ip;            ///< the interrupted instruction, perhaps in the kernel
  uint64_t period;
  uint64_t cookie;  ///< the value given when attaching
  uint16_t is_kernel_mode;
  uint16_t running;  ///< with_times: number of threads of the target that were on a CPU
  /// Size of the data that follows: words of the stack, or bytes of the stack's piece, which starts
  /// at the stack pointer.
  uint32_t length;
  /// Number of the kernel stack's frames after that data, if the kernel stack has no number.
  uint32_t kernel_frames;
  uint32_t stop;  ///< StackStop of the user's stack, if there is one
};

enum { kCommandLineBytes = 2048, kNameBytes = 16 };
/// Of `record`, `cookie` is the parent's tgid, `length` the size of `words`, and `period` the time
/// right before the kernel's own record of the exec.
struct CommandLineRecord {
  struct SampleRecord record;
  char name[kNameBytes];          ///< the new one of the process
  char words[kCommandLineBytes];  ///< its command line, as in stream::CommRecord
};

/// SumKey::state of the time for which a thread held a lock, instead of a wait.
enum { kStateHeld = 255 };

/// The reason of a wait.  The thread's system call or fault, and its state, show it.
enum WaitKind {
  kWaitOther,
  kWaitReady,  ///< for a CPU: it could run
  kWaitLock,   ///< a futex
  kWaitSleep,  ///< a time
  kWaitIo,     ///< a file, a socket, a pipe, or one of several
  kWaitFault,  ///< memory: a page
  kWaitChild,  ///< another process
};

/// The key that separates the sums of switches.
struct SumKey {
  uint32_t tgid, tid;
  uint32_t user_stack;  ///< 0: a kernel thread, or no room
  uint32_t kernel_stack;
  uint32_t waker;  ///< 0: none was seen, or no room
  /// TASK_... of include/linux/sched.h below 256, 128 for TASK_REPORT_IDLE; 0: the thread was
  /// preempted, or yielded; or kStateHeld.
  uint32_t state : 8;
  uint32_t kind : 3;      ///< with_times: WaitKind
  uint32_t program : 21;  ///< changes with each program that the process executes
  /// The avma of the futex that it waited for, or held; 0 without with_locks.  Bit 0 is set if the
  /// end of another thread ended the wait.
  uint64_t lock;
};

enum { kProgramMask = 0x1fffff };  ///< the bits of SumKey::program

/// A wait that ended at time_ns of its record.
struct EndedWait {
  struct SumKey key;
  uint64_t since_ns;  ///< also time_ns of the thread's kRecordPassedOn, if it was forwarded
  uint64_t woken_ns;  ///< with_times: from then on it waited for a CPU
  /// With_times: from then on no thread of the target ran; 0: one ran at the end of the wait.
  uint64_t silent_ns;
  /// For each waker, time_ns of its kRecordPassedWaker; 0: it was not forwarded.
  uint64_t copied_ns[kMaxWakers];
};

/// Bits of the programs' `activity` that have the number of running threads: times.bpf.h.
enum { kRunningBits = 16 };

struct Sum {
  uint64_t ns;
  uint64_t count;
  uint64_t last_ns;  ///< CLOCK_MONOTONIC, end of the last of them
  // With_times, parts of `ns`; those of a thread that had not run before are in no `ns`.
  uint64_t ready_ns;         ///< from when the thread was woken: it waited for a CPU
  uint64_t silent_ns;        ///< while no thread of the targets ran
  uint64_t silent_ready_ns;  ///< both
};

/// Sums are in an array, in the order of their first switches.
struct KeyedSum {
  struct SumKey key;
  struct Sum sum;  ///< count is 0 until the key has been written
};

enum { kMaxReferences = 15 };
/// The numbers of stacks and wakers that a thread's state has from before the last renewal; 0:
/// none.
struct References {
  uint32_t numbers[kMaxReferences];
};

/// A thread that is off its CPU.
struct Outstanding {
  struct SumKey key;
  uint64_t since_ns;  ///< CLOCK_MONOTONIC
};

/// A thread that has been off its CPU since before the recording.
struct EarlierWait {
  struct Outstanding outstanding;  ///< since the start of the recording
  uint64_t has_user_stack;         ///< 1: user space can walk it, and must
  uint64_t thread_pointer;
  uint64_t registers[kPassedRegisters];  ///< by DWARF number
};

/// The limits at which a walk ends: bpf/limits.bpf.h.
enum WalkLimit {
  kNoLimit,
  kLimitOfTime,
  kLimitOfBudget,  ///< long walks would take too much of the CPU's time
  kLimitOfFaults,  ///< unreadable memory
  kWalkLimits,
};

/// A process whose walks ended at a limit.
struct LimitedProcess {
  uint64_t walks;
  char name[kNameBytes];  ///< of the thread that had the first of them
};

/// The counts of one CPU, since loading.
struct Counts {
  uint64_t stacks;                  ///< user stacks that were requested
  uint64_t reused;                  ///< ... that were still one of the thread's last ones
  uint64_t frames;                  ///< of the others
  uint64_t stops[kStackStopCount];  ///< of the others
  uint64_t no_storage;              ///< threads that could not be remembered
  uint64_t stacks_full;             ///< stacks that had no room
  uint64_t sums_full;               ///< switches that had no room
  uint64_t sums_full_ns;            ///< their time
  /// Threads that left a CPU twice, and were not seen to return to one in between (tracing may be
  /// off on that CPU).  They are assumed to have returned once, as long ago as they have run since.
  /// missed_ns is the time off the CPU that results from this.
  uint64_t missed;
  uint64_t missed_ns;
  uint64_t ring_full;     ///< samples that had no room, and switches that could not be forwarded
  uint64_t samples_full;  ///< with_times: samples that had no room
  uint64_t execs_full;    ///< execs that could not be remembered: mappings may be stale
  uint64_t targets_full;  ///< forked processes that could not be followed
  uint64_t wrong_reuse;   ///< with check_reuse only: reused stacks that a new walk found to differ
  uint64_t kernel_unwound;  ///< kernel stacks of switches that the kernel unwound
  uint64_t kernel_reused;   ///< ... that were still one of the thread's last ones
  uint64_t scripts_full;    ///< stacks of interpreters that had no room
  uint64_t commands_full;   ///< command lines that had no room
  /// Walks of native stacks, or in interpreters, that ended at this WalkLimit.
  uint64_t limited[kWalkLimits];
  uint64_t thinned;  ///< kRecordThinned
};

#ifdef __cplusplus
static_assert(sizeof(SampleRecord) == 72 && sizeof(SumKey) == 32 && sizeof(Outstanding) == 40 &&
              sizeof(EndedWait) == 88 && sizeof(EarlierWait) == 192);
}  // namespace pe::unwind
#endif

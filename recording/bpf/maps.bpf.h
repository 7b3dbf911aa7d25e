// The maps and settings of the kernel's unwinder, and the state of a walk.
// SPDX-License-Identifier: MIT OR GPL-2.0-only
#pragma once

#include "recording/bpf/kernel_types.h"
//
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "recording/bpf/hit_weight.h"
#include "recording/bpf/layout.h"
#include "recording/bpf/records.h"
#include "recording/bpf/targets.bpf.h"

/// Makes the compiler check and use the same register.  If it checks a bound on a copy, the
/// verifier does not know the bound.
#define KEEP(value) asm volatile("" : "+r"(value))
/// The compiler moves no access to memory across it.
#define KEEP_ORDER() asm volatile("" ::: "memory")

enum {
  kWindowWords = 512,
  kFirstWindowBytes = 1024,
  kHistories = 4,          ///< number of stacks remembered of each thread
  kKernelHistories = 4,    ///< number of kernel stacks remembered
  kStacksBeforeReuse = 2,  ///< that a thread must have had before any are remembered
  kMaxReusing = 1024,      ///< threads whose stacks are remembered
  kThreadSums = 4,         ///< number of sums remembered
  kThreadWakers = 4,       ///< number of wakers remembered
  kHeldLocks = 4,          ///< number of locks that a thread holds
  kFoundRules = 1024,      ///< number of rules that a scratch remembers
  kHistoryWords = 128,     ///< room; the last 8 are for filling up a step
  kMaxHistoryWords = 120,  ///< limit of the words that a walk reads, if it is to be remembered
  kFromStartShift = 15,    ///< bit of a place: see NotedWords
  kWakeAfterNs = 4000000,  ///< the ring's reader, after its last reading, if a stack needs mappings
};

// Settings of the loader.  They are constant for the verifier, which leaves out unused code.
// Booleans are numbers, because C++ does not know C's type for them.
const volatile uint32_t only_targets = 0;
const volatile uint32_t with_kernel_stacks = 0;
const volatile uint32_t with_kernel_threads = 0;
const volatile uint32_t with_user_stacks = 1;  ///< of switches, and of wakers
const volatile uint32_t with_scripts = 0;      ///< the same stacks have those of interpreters
const volatile uint32_t with_locks = 0;        ///< notes futexes, and who released them
const volatile uint32_t only_locks = 0;        ///< with_locks: counts only waits for these
const volatile uint32_t with_held = 0;         ///< ... and, in place of the waits, times of holding
/// Divides waits by their kind, and notes when no thread of the targets runs.
const volatile uint32_t with_times = 0;
const volatile uint32_t with_wakers = 0;  ///< with_locks: of other waits, too
const volatile uint32_t max_wakers = 1;   ///< 1 to kMaxWakers
const volatile uint32_t pass_on = kPassNothing;
const volatile uint32_t each_apart = 0;  ///< reports each wait, as long as there is room
const volatile uint32_t with_reuse = 1;
const volatile uint32_t check_reuse = 0;
const volatile uint64_t min_ns = 0;
const volatile uint64_t max_ns = ~0ULL;
const volatile uint32_t state_mask = ~0U;  ///< bit 0: preempted; others as TASK_... shifted by one
/// Blocks of a half of the map `stacks`, a power of two; 0: stacks come with their samples.
const volatile uint32_t stack_room = 0;
const volatile uint32_t sum_room = 0;           ///< the same of the map `sums`; 0: no sums
const volatile uint32_t samples_are_whole = 0;  ///< the stacks of samples have no numbers
const volatile uint32_t budget_percent = 0;  ///< of each CPU, for samples; 0: all: thinning.bpf.h
const volatile uint64_t wakeup_bytes = 0;    ///< bytes in the ring that wake its reader; 0: any

/// The first number of the half in use, in the upper 32 bits, and how much of it is in use.  The
/// first place of each half stays free, because 0 is no number.
uint64_t next_stack = 1;
uint64_t next_sum = 1;
uint32_t is_paused = 0;     ///< samples are ignored
uint32_t reusing = 0;       ///< threads that have ThreadStacks
uint32_t states_found = 0;  ///< threads that had a ThreadState when on_each_task() last ran
/// With_times: number of the targets' threads that are on a CPU, and when it last fell:
/// times.bpf.h.
uint64_t activity = 0;
uint64_t began_ns = 0;  ///< CLOCK_MONOTONIC ns: when switches began to be recorded
/// CLOCK_MONOTONIC ns: when the ring's reader last read it, or was woken for mappings.
uint64_t read_ns = 0;
/// How often mappings have changed in any process: as user space reports it, and as the programs
/// notice it.  While both are the same, threads need not look up their process.
uint64_t changes_announced = 0;
uint64_t changes_seen = 0;

// Maps that user space writes; see layout.h.
struct Chunk {
  uint32_t words[kChunkWords];
};
struct ChunkMap {
  __uint(type, BPF_MAP_TYPE_ARRAY);
  __uint(max_entries, 1);
  __uint(map_flags, BPF_F_MMAPABLE);
  __uint(key_size, sizeof(uint32_t));  // sizes: libbpf does not know inner maps' types
  __uint(value_size, sizeof(struct Chunk));
};
struct {
  __uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
  __uint(max_entries, kMaxChunks);
  __type(key, uint32_t);
  __array(values, struct ChunkMap);
} chunks SEC(".maps");

struct RuleTable {
  struct RuleEntry entries[kMaxRules];
};
struct {
  __uint(type, BPF_MAP_TYPE_ARRAY);
  __uint(max_entries, 1);
  __uint(map_flags, BPF_F_MMAPABLE);
  __type(key, uint32_t);
  __type(value, struct RuleTable);
} rules SEC(".maps");

struct {
  __uint(type, BPF_MAP_TYPE_HASH);
  __uint(max_entries, kMaxProcesses);
  __uint(map_flags, BPF_F_NO_PREALLOC);
  __type(key, uint32_t);
  __type(value, struct ProcessMappings);
} processes SEC(".maps");

/// When a process last got a name, and when it last got one by exec: right before the
/// PERF_RECORD_COMM.
struct ExecTimes {
  uint64_t renamed_ns, exec_ns;
};
struct {
  __uint(type, BPF_MAP_TYPE_HASH);
  __uint(max_entries, 32768);
  __uint(map_flags, BPF_F_NO_PREALLOC);
  __type(key, uint32_t);
  __type(value, struct ExecTimes);
} execs SEC(".maps");

// Maps that user space reads; see records.h.  The loader sets their sizes.
struct StackKey {
  uint64_t hash;
  uint64_t attempt;  ///< 0, or more if other stacks have the same hash
};
struct {
  __uint(type, BPF_MAP_TYPE_HASH);
  __uint(max_entries, 1);
  __uint(map_flags, BPF_F_NO_PREALLOC);
  __type(key, struct StackKey);
  __type(value, uint32_t);
} stack_numbers SEC(".maps");
struct {
  __uint(type, BPF_MAP_TYPE_ARRAY);
  __uint(max_entries, 1);
  __uint(map_flags, BPF_F_MMAPABLE);
  __type(key, uint32_t);
  __type(value, struct StackBlock);
} stacks SEC(".maps");
struct {
  __uint(type, BPF_MAP_TYPE_HASH);
  __uint(max_entries, 1);
  __uint(map_flags, BPF_F_NO_PREALLOC);
  __type(key, struct SumKey);
  __type(value, uint32_t);
} sum_numbers SEC(".maps");
struct {
  __uint(type, BPF_MAP_TYPE_ARRAY);
  __uint(max_entries, 1);
  __uint(map_flags, BPF_F_MMAPABLE);
  __type(key, uint32_t);
  __type(value, struct KeyedSum);
} sums SEC(".maps");
struct {
  __uint(type, BPF_MAP_TYPE_RINGBUF);
  __uint(max_entries, 4096);
} ring SEC(".maps");
struct {
  __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
  __uint(max_entries, 1);
  __type(key, uint32_t);
  __type(value, struct Counts);
} counts SEC(".maps");

/// Noted words of a stack's memory.
struct NotedWords {
  uint32_t span_bytes;  ///< up to the highest of them
  uint32_t steps;       ///< each step is eight words
  /// In words above the start.  If the bit kFromStartShift is set, the value is a pointer, less the
  /// start.
  uint16_t places[kHistoryWords];
  uint64_t values[kHistoryWords];
};

/// A stack that a thread had, and every word of its memory that the walk read.  While these and the
/// start registers are the same, another walk would find the same stack.
struct History {
  uint64_t ip, sp, fp;
  uint64_t generation;  ///< 0: nothing is remembered
  uint32_t stack;
  uint32_t uses_fp;  ///< whether the walk depended on fp
  struct NotedWords noted;
};

/// A stack that a thread had in the kernel; see kernel_stack.bpf.h.
struct KernelHistory {
  uint32_t stack;    ///< 0: nothing is remembered
  uint32_t has_gap;  ///< whether only the words below the outermost function's frame are compared
  uint64_t bytes;    ///< from the tracepoint's arguments to the task's registers
  uint64_t last, last_from_end;  ///< the last frame, and its distance below the registers
  struct NotedWords noted;
};

/// Wakers as in records.h: the thread that ended a wait, the thread that ended a wait of that, ...
struct Waking {
  uint64_t words[2 * kMaxWakers];
  uint64_t count;                  ///< number of words
  uint64_t copied_ns[kMaxWakers];  ///< as in EndedWait
};

/// A single waker that has a number.
struct KnownWaker {
  uint64_t words[2];
  uint64_t number;  ///< 0: none
};

/// A lock that a thread got after it had waited for it.
struct HeldLock {
  uint64_t lock;        ///< the avma of its futex; 0: none
  uint64_t since_ns;    ///< when the thread came to a CPU again
  uint32_t user_stack;  ///< where it had waited
  uint32_t program;     ///< as in SumKey
};

struct ThreadState {
  uint64_t since_ns;  ///< when it left its CPU; 0: it is on one
  uint64_t ran_ns;    ///< its time on CPUs until then
  struct SumKey key;
  uint64_t delay_ns;     ///< with_times: for how long it had waited for CPUs when it left its CPU
  uint32_t is_running;   ///< with_times: counted in `activity`
  uint32_t call_kind;    ///< with_times: of the last wait in a system call
  uint64_t kernel_lock;  ///< with_times: address of a lock of the kernel that it waits for; 0: none
  uint32_t is_passed_on;       ///< whether its last switch was forwarded
  uint32_t waker;              ///< the last waker's number, since it came to a CPU; see records.h
  uint32_t stacks_taken;       ///< up to kStacksBeforeReuse
  uint32_t reuse;              ///< enum Reuse
  uint32_t sums[kThreadSums];  ///< numbers of its last sums, by a hash of their key
  struct Waking waking;        ///< the last one
  uint64_t ended_by_exit;      ///< 1: by the end of a thread, since it came to a CPU
  uint64_t ended_by_release;   ///< with_locks: 1: by a release, since it came to a CPU
  struct HeldLock held[kHeldLocks];               ///< by a hash of the lock's address
  uint64_t woken_ns;                              ///< when it last came to a CPU after a wait
  struct KnownWaker known_wakers[kThreadWakers];  ///< by a hash
};
struct {
  __uint(type, BPF_MAP_TYPE_TASK_STORAGE);
  __uint(map_flags, BPF_F_NO_PREALLOC);
  __type(key, int);
  __type(value, struct ThreadState);
} threads SEC(".maps");

/// Whether a thread has ThreadStacks.  After its end it may still leave its CPU.
enum Reuse { kNoReuse, kHasStacks, kReuseEnded };

/// The last stacks of a thread.  They take 16 KiB in the kernel, ten times the rest of its state,
/// and most threads of a large program hardly run.  So only threads that have run several times
/// have them, and not more than kMaxReusing.  Stacks of others are walked each time.
struct ThreadStacks {
  uint64_t changes;  ///< changes_announced + changes_seen + 1 when `generation` was found; 0: never
  uint64_t generation;    ///< of its process's mappings; 0: do not use them
  uint32_t next_history;  ///< the next one to be replaced
  uint32_t next_kernel_history;
  struct History histories[kHistories];
  struct KernelHistory kernel_histories[kKernelHistories];
};
struct {
  __uint(type, BPF_MAP_TYPE_TASK_STORAGE);
  __uint(map_flags, BPF_F_NO_PREALLOC);
  __type(key, int);
  __type(value, struct ThreadStacks);
} thread_stacks SEC(".maps");

/// The time and the faults of one walk: limits.bpf.h.
struct Limits {
  uint32_t left;      ///< steps until the next check; 0 once the walk has ended
  uint32_t faults;    ///< reads that have failed
  uint32_t ended_by;  ///< WalkLimit
  uint32_t most_ns;   ///< limit of a long walk
  uint32_t is_long;
  uint64_t started_ns;  ///< the first check; 0: none yet
  uint64_t until_ns;    ///< the walk may take until then
};

/// The rule that a walk has found at an address, in mappings of that generation.
struct FoundRule {
  uint64_t avma;
  uint64_t generation;  ///< 0: none
  struct RuleEntry rule;
};

/// State of one walk.  It is in a map, because the verifier verifies each path separately on which
/// a variable on the stack has another value.
struct Scratch {
  uint32_t is_busy;   ///< of a probe's program; see hit_scratches
  uint32_t is_whole;  ///< its stacks get no numbers
  uint32_t is_new;    ///< the last stack that got a number is new
  struct Limits limits;
  uint64_t window[kWindowWords];  ///< a part of the stack's memory
  uint64_t window_start, window_bytes, next_window_bytes;
  uint64_t ip, sp;
  uint64_t fp;     ///< the frame pointer, if known
  uint64_t fp_at;  ///< where it is saved, if not read yet; or kInFp, kInStartRegister
  uint64_t read_value;
  uint64_t start_sp;
  uint64_t hash;
  uint64_t max_place;     ///< the highest word that was read
  uint64_t registers_at;  ///< of an exact frame: in the kernel (the first), or in a signal's frame
  uint64_t mapping_start, mapping_bytes, mapping_base;
  uint64_t return_probe;  ///< a struct return_instance; 0: no function of the thread has a probe
  uint64_t trampoline;    ///< to which functions with return probes return
  uint32_t mapping_index, mapping_rows;
  uint32_t count;  ///< number of frames
  uint32_t stop;
  uint32_t is_exact;  ///< of the current frame
  uint32_t source;    ///< unwind::FrameSource of the current frame
  uint32_t uses_fp;
  uint32_t places_read;
  uint32_t is_unique;     ///< depends on data that is not compared
  uint32_t header_bits;   ///< kHeaderKernel, kHeaderWaker, kHeaderScriptCut
  uint32_t script_words;  ///< number of the last of `words` that are an interpreter's frames
  /// For the kernel's stack: number of frames found in the window, and the words of the last two.
  uint32_t matched, last_but_one, last;
  uint16_t places[kHistoryWords];
  uint64_t values[kHistoryWords];
  struct SampleRecord record;
  /// Directly after the record: both are sent together, followed by the kernel's frames.
  uint64_t words[kMaxFrames + 2 * kBlockWords + kMaxKernelFrames];
  struct SampleRecord passed;
  uint64_t passed_registers[kPassedRegisters];
  uint8_t passed_stack[kPassedStackBytes + kMaxKernelFrames * 8];
  uint64_t kernel_frames[kMaxKernelFrames];
  struct FoundRule found[kFoundRules];  ///< by a hash of the address; stays for later walks
};
/// Each CPU has three: a sample may interrupt a switch, or the waking of a task.
enum { kOfSwitch, kOfSample, kOfWaking, kScratchesOfCpu };
struct {
  __uint(type, BPF_MAP_TYPE_ARRAY);
  __uint(max_entries, kScratchesOfCpu);
  __type(key, uint32_t);
  __type(value, struct Scratch);
} scratches SEC(".maps");
/// A thread may leave its CPU while a probe's program runs for it, and another thread may pass a
/// probe there.  Each CPU has some for them; the loader sets the number of CPUs.
enum { kHitScratches = 4 };
struct {
  __uint(type, BPF_MAP_TYPE_ARRAY);
  __uint(max_entries, 1);
  __type(key, uint32_t);
  __type(value, struct Scratch);
} hit_scratches SEC(".maps");
/// The weights of hits, by the cookie of their counter.  Others weigh 1.
struct {
  __uint(type, BPF_MAP_TYPE_HASH);
  __uint(max_entries, 16384);
  __uint(map_flags, BPF_F_NO_PREALLOC);
  __type(key, uint64_t);
  __type(value, struct HitWeight);
} hit_weights SEC(".maps");

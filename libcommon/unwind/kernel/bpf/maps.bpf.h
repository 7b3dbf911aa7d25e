// The kernel's unwinder: its maps, its settings, and what a walk keeps.
// SPDX-License-Identifier: MIT
#pragma once

#include "unwind/kernel/bpf/kernel_types.h"
//
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "unwind/kernel/bpf/targets.bpf.h"
#include "unwind/kernel/layout.h"
#include "unwind/kernel/records.h"

/// Makes the compiler check and use the same register: of a bound that it checks on a copy the
/// verifier knows nothing.
#define KEEP(value) asm volatile("" : "+r"(value))

enum {
  kWindowWords = 512,
  kFirstWindowBytes = 1024,
  kHistories = 4,          ///< stacks remembered of each thread
  kKernelHistories = 4,    ///< and kernel stacks
  kHistoryWords = 128,     ///< room; the last 8 are for filling up
  kMaxHistoryWords = 120,  ///< of the words that a walk reads, if it is to be remembered
  kFromStartShift = 15,    ///< bit of a place: see NotedWords
};

// Settings: the loader's, constant for the verifier, which leaves out what is not used.  Truths are
// numbers, because C++ does not know the name that C has for their type.
const volatile uint32_t only_targets = 0;
const volatile uint32_t with_kernel_stacks = 0;
const volatile uint32_t with_kernel_threads = 0;
const volatile uint32_t with_user_stacks = 1;  ///< of switches, and wakers
const volatile uint32_t pass_on = kPassNothing;
const volatile uint32_t with_reuse = 1;
const volatile uint32_t check_reuse = 0;
const volatile uint64_t min_ns = 0;
const volatile uint64_t max_ns = ~0ULL;
const volatile uint32_t state_mask = ~0U;  ///< bit 0: preempted; others as TASK_... shifted by one
const volatile uint32_t stack_blocks =
    0;  ///< of the map `stacks`; 0: stacks come with their samples
const volatile uint64_t wakeup_bytes = 0;  ///< in the ring, that wake its reader; 0: any

uint64_t next_stack_block = 1;  ///< 0 is no stack
uint32_t is_paused = 0;         ///< samples are ignored
/// How often what is mapped has changed anywhere, told by user space and noticed here: while both
/// stand, threads need not look for their process.
uint64_t changes_told = 0;
uint64_t changes_seen = 0;

// What user space writes; see layout.h.
struct Chunk {
  uint32_t words[kChunkWords];
};
struct ChunkMap {
  __uint(type, BPF_MAP_TYPE_ARRAY);
  __uint(max_entries, 1);
  __uint(map_flags, BPF_F_MMAPABLE);
  __uint(key_size, sizeof(uint32_t));  // sizes, for of types of inner maps libbpf knows nothing
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

/// When a process was given a name, and the last time that this was by exec: right before the
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

// What user space reads; see records.h.  Their sizes are the loader's.
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
  __type(value, struct Sum);
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

/// Words of a stack's memory.
struct NotedWords {
  uint32_t span_bytes;  ///< up to the highest of them
  uint32_t steps;       ///< of eight words each
  /// In words above the start; with the bit kFromStartShift, the value is a pointer, less the
  /// start.
  uint16_t places[kHistoryWords];
  uint64_t values[kHistoryWords];
};

/// A stack that a thread had, and every word of its memory that the walk read: while those stand,
/// and the registers that it began with, another walk would find the same.
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
  uint32_t has_gap;  ///< whether only what is below the outermost function's frame is compared
  uint64_t bytes;    ///< from the tracepoint's arguments to the task's registers
  uint64_t last, last_from_end;  ///< the last frame, and where it stands below the registers
  struct NotedWords noted;
};

struct ThreadState {
  uint64_t since_ns;  ///< when it left its CPU; 0: it is on one
  uint64_t ran_ns;    ///< on CPUs, until then
  struct SumKey key;
  uint64_t changes;       ///< when `generation` was found, and one more; 0: never
  uint64_t generation;    ///< of its process's mappings; 0: they are not to be used
  uint32_t next_history;  ///< to be replaced
  uint32_t is_passed_on;  ///< what it left its CPU with
  uint32_t waker;         ///< the last one's number, since it came to a CPU; see records.h
  uint32_t next_kernel_history;
  struct History histories[kHistories];
  struct KernelHistory kernel_histories[kKernelHistories];
};
struct {
  __uint(type, BPF_MAP_TYPE_TASK_STORAGE);
  __uint(map_flags, BPF_F_NO_PREALLOC);
  __type(key, int);
  __type(value, struct ThreadState);
} threads SEC(".maps");

/// Of one walk.  In a map, because every path on which the verifier knows another value of a
/// variable on its stack is verified by itself.
struct Scratch {
  uint64_t window[kWindowWords];  ///< of the stack's memory
  uint64_t window_start, window_bytes, next_window_bytes;
  uint64_t ip, sp;
  uint64_t fp;     ///< the frame pointer, if it is known
  uint64_t fp_at;  ///< where it is saved, not read yet; or kInFp, kInStartRegister
  uint64_t read_value;
  uint64_t start_sp;
  uint64_t hash;
  uint64_t max_place;     ///< the highest word that was read
  uint64_t registers_at;  ///< of an exact frame: in the kernel (the first), or a signal's frame's
  uint64_t mapping_start, mapping_bytes, mapping_base;
  uint32_t mapping_index, mapping_rows;
  uint32_t count;  ///< frames
  uint32_t stop;
  uint32_t is_exact;  ///< of the frame that is walked
  uint32_t source;    ///< unwind::FrameSource of it
  uint32_t uses_fp;
  uint32_t places_read;
  uint32_t is_unique;    ///< depends on what is not compared
  uint32_t header_bits;  ///< kHeaderKernel, kHeaderWaker
  /// Of the kernel's stack: frames that were found in the window, and the words where.
  uint32_t matched, last_but_one, last;
  uint16_t places[kHistoryWords];
  uint64_t values[kHistoryWords];
  struct SampleRecord record;
  /// Right after the record: sent together, with the kernel's frames behind.
  uint64_t words[kMaxFrames + 2 * kBlockWords + kMaxKernelFrames];
  struct SampleRecord passed;
  uint64_t passed_registers[kPassedRegisters];
  uint8_t passed_stack[kPassedStackBytes + kMaxKernelFrames * 8];
  uint64_t kernel_frames[kMaxKernelFrames];
};
/// For each CPU: a sample may interrupt a switch, or the waking of a task.
enum { kOfSwitch, kOfSample, kOfWaking, kScratchesOfCpu };
struct {
  __uint(type, BPF_MAP_TYPE_ARRAY);
  __uint(max_entries, kScratchesOfCpu);
  __type(key, uint32_t);
  __type(value, struct Scratch);
} scratches SEC(".maps");

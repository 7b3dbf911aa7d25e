// The memory that a process which samples itself shares with its recorder: a table of threads, and
// a ring of samples for each.
//
// The signal handlers of the process write, with plain stores and atomics.  A holder of the memfd
// reads, even after the process has been killed.  The file is sparse:
//
//     Header
//     text            /proc/self/maps as it was when sampling started
//     Thread[]        max_threads of them
//     ring[]          ring_bytes for each thread
//
// A thread of the process claims a slot of the table (kFree -> kStarting -> kLive), and gives it
// back when the thread ends (kEnded).  The reader frees the slot once it has read the rest of the
// ring.  `head` and `tail` count the bytes that were written and read since the file was created.
// They are never reset: byte n of a ring is at n % ring_bytes.  Only the thread's own signal
// handler moves head, and only the reader moves tail.
//
// A ring holds finished PERF_RECORD_SAMPLE records of sample_attr().  The record of a stack in an
// interpreter precedes its sample (script_words.h).  Records may wrap around to the ring's start.
//
// The process is untrusted, so the reader must check all data.  Numbers are in host order.
// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <ctime>
#include <limits>

#include "base/clock.h"
#include "languages/registry.h"
#include "recording/inprocess/runtime/tick.h"
#include "stream/records/record.h"
#include "stream/records/sample.h"

namespace pe::inprocess {

/// The file of the library that is loaded into commands.
inline constexpr const char* kSamplerLibrary = "libsampler_preload.so";
inline constexpr std::uint64_t kMagic = 0x37676e6973637065;  ///< "epcsing7", the layout's version

/// In /proc/PID/maps the file is "/memfd:<this>".
inline constexpr const char* kMemoryName = "pe-sampler";

inline constexpr std::uint64_t kMapsAt = 4096;
inline constexpr std::uint64_t kThreadsAt = std::uint64_t{1} << 20;
inline constexpr std::uint64_t kMaxMapsBytes = kThreadsAt - kMapsAt;
inline constexpr std::uint32_t kMaxThreads = 4096;  ///< at one time; fewer if memory is limited
inline constexpr std::uint32_t kFewestThreads = 16;
/// The maximum number of signals per second to a process on the wall clock, which also wakes
/// waiting threads.  A signal that wakes a thread costs 10 to 20 us.  With 50,000 per second, a
/// process on two CPUs had no time for its work, and three of four samples were lost.
inline constexpr std::uint32_t kMostWallSignals = 20'000;
inline constexpr std::uint64_t kRingsAt = std::uint64_t{2} << 20;

inline constexpr std::uint32_t kLeastRingBytes = 1 << 16, kMostRingBytes = 1 << 24;
inline constexpr std::uint32_t kLeastHz = 1, kMostHz = 1000;

enum class BeganAs : std::uint32_t { kProgram, kFork };

/// The source of the signals.
enum class TimerKind : std::uint32_t {
  kThread,   ///< one timer per thread
  kProcess,  ///< ITIMER_PROF of the whole process, if timers of threads are unavailable
};

/// Why sampling of a process has stopped early.
enum class WhyStopped : std::uint32_t {
  kNot,
  kOwnTimer,    ///< the process uses ITIMER_PROF
  kFilter,      ///< a filter of system calls forbids the return from handlers
  kSmallStack,  ///< an alternate stack is too small, and ITIMER_PROF may interrupt any thread
};

inline constexpr std::size_t kWantedTids = 16;

/// The interpreter of a process.
struct ScriptOfProcess {
  std::uint32_t is_known;  ///< 1: the other fields are valid; written last
  languages::ScriptLayout layout;
  std::uint64_t runtime;  ///< avma of its state
};

// Each cache line has only fields of one writing thread or process.
struct Header {         // NOLINT(clang-analyzer-optin.performance.Padding)
  std::uint64_t magic;  ///< kMagic, written last
  std::uint32_t pid;    ///< in the process's own pid namespace
  std::uint32_t parent_pid;
  std::uint64_t start_ns;  ///< CLOCK_MONOTONIC
  char command[16];        ///< from prctl(PR_GET_NAME)
  std::uint32_t began_as;  ///< BeganAs
  std::uint32_t timer_kind;
  std::uint32_t hz;
  std::uint32_t stack_bytes;  ///< maximum size of a stack's copy
  std::uint32_t ring_bytes;   ///< a power of two
  std::uint32_t max_threads;
  std::uint32_t maps_bytes;

  alignas(64) std::uint32_t threads;  ///< slots that were ever claimed: 0..threads-1
  std::uint32_t why_stopped;          ///< WhyStopped
  std::uint32_t is_closed;          ///< 1: a filter of system calls forbids to sample more threads
  std::uint64_t without_room;       ///< threads that found all slots in use
  std::uint64_t before_reader;      ///< ... or found slots that the reader had not freed yet
  std::uint64_t without_timer;      ///< threads whose timer the kernel refused
  std::uint64_t without_stack;      ///< threads whose alternate stack is too small for a handler
  std::uint64_t without_variables;  ///< threads of clone(2) in another's thread-local storage
  std::uint64_t strays;             ///< SIGPROF signals that were neither ours nor the program's
  std::uint64_t left_out;  ///< programs started without the library, which would break them

  /// Written by the reader: threads that the process has not found itself.  0: none.
  alignas(64) std::uint32_t wanted_tids[kWantedTids];
  /// Written by the reader.
  alignas(64) ScriptOfProcess script;
};
static_assert(sizeof(Header) <= kMapsAt);

enum SlotState : std::uint32_t { kFree, kStarting, kLive, kEnded };

// NOLINTNEXTLINE(clang-analyzer-optin.performance.Padding): as in Header
struct alignas(64) Thread {
  std::uint32_t state;  ///< SlotState
  std::uint32_t tid;    ///< in the process's pid namespace
  std::uint64_t start_ns;
  char name[16];  ///< from prctl(PR_GET_NAME) when the thread started or ended; may be empty

  // Written by the thread's handler.  Counts are never reset.
  alignas(64) std::uint64_t head;
  std::uint64_t samples;       ///< in the ring
  std::uint64_t weight;        ///< of `samples`, in periods of the timer, with overruns
  std::uint64_t lost_samples;  ///< dropped because the ring was full
  std::uint64_t lost_weight;
  std::uint64_t cut_samples;       ///< samples with only a part of their stack
  std::uint64_t uncopied_samples;  ///< ... without all of it, or without that of an interpreter

  // Written by the reader.
  alignas(64) std::uint64_t tail;
  std::uint32_t is_unwanted;  ///< 1: nobody wants its samples
};
static_assert(sizeof(Thread) == 192);
static_assert(kMaxThreads * sizeof(Thread) <= kRingsAt - kThreadsAt);

/// Returns the event of the records in the rings.
inline perf_event_attr sample_attr(std::uint32_t hz, std::uint32_t stack_bytes) noexcept {
  perf_event_attr attr{};
  attr.size = sizeof attr;
  attr.type = PERF_TYPE_SOFTWARE;
  attr.config = PERF_COUNT_SW_CPU_CLOCK;
  attr.sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_PERIOD |
                     PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER;
  attr.freq = 1;
  attr.sample_freq = hz;
  attr.sample_regs_user = stream::kKnownRegisters;
  attr.sample_stack_user = stack_bytes;
  attr.exclude_kernel = 1;
  attr.exclude_hv = 1;
  attr.sample_id_all = 1;
  attr.use_clockid = 1;
  attr.clockid = CLOCK_MONOTONIC;
  return attr;
}

/// The registers in a record, by the kernel's numbers: ax bx cx dx si di bp sp ip r8 ... r15.
inline constexpr std::size_t kRegisters = 17;
inline constexpr std::size_t kSpRegister = 7, kIpRegister = 8;

/// The start of a record.  The copy of the stack follows it.  After the copy come an unused word,
/// unless the stack continues beyond the copy, and the number of copied bytes.
struct SampleHead {
  perf_event_header header;
  std::uint64_t ip;
  std::uint32_t pid, tid;   ///< in the process's pid namespace
  std::uint64_t time_ns;    ///< CLOCK_MONOTONIC_COARSE
  std::uint64_t period_ns;  ///< whole periods of the timer
  std::uint64_t abi;        ///< PERF_SAMPLE_REGS_ABI_64
  std::uint64_t registers[kRegisters];
  std::uint64_t stack_room;  ///< bytes of the copy and the unused word; 0: the record ends here
};
static_assert(sizeof(SampleHead) == 192);

/// Returns the maximum size of a record with `stack_bytes` of stack.
constexpr std::uint64_t record_bytes(std::uint64_t stack_bytes) noexcept {
  return sizeof(SampleHead) + stack_bytes + 2 * sizeof(std::uint64_t);
}

/// The maximum size of a stack's copy: a record's size has 16 bits.  Leaves room for the fields
/// that the recorder adds.
inline constexpr std::uint32_t kMostCopiedBytes = 65'000;
static_assert(record_bytes(kMostCopiedBytes) <= std::numeric_limits<std::uint16_t>::max());

/// How a program samples itself.
struct SampleSettings {
  std::uint32_t hz = 99;  ///< not a multiple of programs' usual rates
  Clock clock = Clock::kCpu;
  std::uint32_t stack_bytes = 32 * 1024;  ///< maximum size of a stack's copy
  std::uint32_t ring_bytes = 512 * 1024;  ///< per thread; a power of two

  /// Returns the length of the timer's period.
  [[nodiscard]] std::uint64_t period_ns() const noexcept { return kNsPerSecond / hz; }
  /// Makes a ring's size a power of two, and a stack's so small that four fit in a ring, and one in
  /// a record.
  void fit() noexcept {
    ring_bytes = std::bit_ceil(ring_bytes);
    stack_bytes = std::min({stack_bytes, ring_bytes / 4, kMostCopiedBytes}) / 8 * 8;
  }
};

/// Returns how many threads of a process are sampled at one time, if memory allows.
constexpr std::uint32_t most_threads(Clock clock, std::uint32_t hz) noexcept {
  if (clock != Clock::kWall)
    return kMaxThreads;
  return std::clamp(kMostWallSignals / std::max(hz, std::uint32_t{1}), kFewestThreads, kMaxThreads);
}

constexpr std::uint64_t file_bytes(std::uint64_t max_threads, std::uint64_t ring_bytes) noexcept {
  return kRingsAt + max_threads * ring_bytes;
}

}  // namespace pe::inprocess

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
// A ring holds records: a Sample, stack_bytes of stack from the stack pointer up, and unused bytes
// up to a multiple of eight.  Records may wrap around to the ring's start.
//
// The process is untrusted, so the reader must check all data.  Numbers are in host order.
// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "inprocess/runtime/tick.h"

namespace pe::inprocess {

inline constexpr std::uint64_t kMagic = 0x32676e6973637065;  ///< "epcsing2", the layout's version

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

inline constexpr std::size_t kWantedTids = 16;

// Each cache line has only fields of one writing thread or process.
struct Header {         // NOLINT(clang-analyzer-optin.performance.Padding)
  std::uint64_t magic;  ///< kMagic, written last
  std::uint32_t pid;    ///< in the process's own pid namespace
  std::uint32_t parent_pid;
  std::uint64_t start_ns;  ///< CLOCK_MONOTONIC
  char command[16];        ///< from prctl(PR_GET_NAME)
  std::uint32_t began_as;  ///< BeganAs
  std::uint32_t clock;     ///< Clock
  std::uint32_t timer_kind;
  std::uint32_t hz;
  std::uint32_t stack_bytes;  ///< maximum size of a stack's copy
  std::uint32_t ring_bytes;   ///< a power of two
  std::uint32_t max_threads;
  std::uint32_t maps_bytes;

  alignas(64) std::uint32_t threads;  ///< slots that were ever claimed: 0..threads-1
  std::uint32_t has_stopped;          ///< 1: sampling stopped early: the process uses ITIMER_PROF
  std::uint64_t without_room;         ///< threads that found all slots in use
  std::uint64_t before_reader;        ///< ... or found slots that the reader had not freed yet
  std::uint64_t without_timer;        ///< threads whose timer the kernel refused
  std::uint64_t without_variables;    ///< threads of clone(2) in another's thread-local storage
  std::uint64_t strays;               ///< SIGPROF signals that were neither ours nor the program's
  std::uint64_t left_out;  ///< programs started without the library, which would break them

  /// Written by the reader: threads that the process has not found itself.  0: none.
  alignas(64) std::uint32_t wanted_tids[kWantedTids];
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
  std::uint64_t cut_samples;  ///< samples with only a part of their stack
  std::uint64_t cut_bytes;    ///< the bytes not copied, as far as they are known

  // Written by the reader.
  alignas(64) std::uint64_t tail;
  std::uint32_t is_unwanted;  ///< 1: nobody wants its samples
};
static_assert(sizeof(Thread) == 192);
static_assert(kMaxThreads * sizeof(Thread) <= kRingsAt - kThreadsAt);

/// Registers by DWARF number (System V ABI AMD64, figure 3.36): 0..15, then rip.
inline constexpr std::size_t kRegisters = 17;
inline constexpr std::size_t kSpRegister = 7, kIpRegister = 16;

enum SampleFlags : std::uint32_t {
  kStackIsCut = 1,      ///< the stack continues, or may continue, beyond the copy
  kStackIsUnknown = 2,  ///< not the thread's own stack: copied up to the end of the mapped pages
};

struct Sample {
  std::uint32_t bytes;  ///< size of the record, with the stack; a multiple of eight
  std::uint32_t flags;
  std::uint32_t tid;
  std::uint32_t weight;   ///< periods of the timer that it represents
  std::uint64_t time_ns;  ///< CLOCK_MONOTONIC_COARSE
  std::uint64_t registers[kRegisters];
  std::uint64_t stack_bytes;
};
static_assert(sizeof(Sample) == 168);

/// Returns the size of a record with `stack_bytes` of stack.
constexpr std::uint64_t record_bytes(std::uint64_t stack_bytes) noexcept {
  constexpr std::uint64_t kAlign = 8;
  return (sizeof(Sample) + stack_bytes + kAlign - 1) / kAlign * kAlign;
}

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

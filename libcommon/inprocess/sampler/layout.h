// What a process that samples itself shares with who records it: a table of threads, and a ring of
// samples for each.
//
// The process writes (its signal handlers do), with plain stores and atomics; whoever has the memfd
// reads, also after the process has been killed.  The file is sparse:
//
//     Header
//     text            /proc/self/maps as it was when sampling began
//     Thread[]        max_threads of them
//     ring[]          ring_bytes for each thread
//
// A slot of the table is taken by a thread of the process (kFree -> kStarting -> kLive), given up
// when the thread ends (kEnded), and freed by the reader once it has taken what the ring has left.
// `head` and `tail` count bytes from the beginning of the file and are never set back: byte n of a
// ring is at n % ring_bytes.  The thread's own signal handler is the only one to move head, the
// reader the only one to move tail.
//
// A ring holds records: a Sample, then stack_bytes of stack from the stack pointer up, and nothing
// up to a multiple of eight.  Records may go on at the ring's beginning.
//
// Everything that is read must be checked by its reader: the process may be hostile.  Numbers in
// host order.
// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace pe::inprocess {

inline constexpr std::uint64_t kMagic = 0x32676e6973637065;  ///< "epcsing2", the layout's version

/// In /proc/PID/maps the file is "/memfd:<this>".
inline constexpr const char* kMemoryName = "pe-sampler";

inline constexpr std::uint64_t kMapsAt = 4096;
inline constexpr std::uint64_t kThreadsAt = std::uint64_t{1} << 20;
inline constexpr std::uint64_t kMaxMapsBytes = kThreadsAt - kMapsAt;
inline constexpr std::uint32_t kMaxThreads = 4096;  ///< at one time; fewer where memory is limited
inline constexpr std::uint32_t kFewestThreads = 16;
/// Signals a second to a process on the wall's clock, on which threads that wait get them, too.
/// Each takes 10 to 20 us where it wakes a thread: 50,000 left a process on two CPUs no time for
/// its work, and three of four samples were lost.
inline constexpr std::uint32_t kMostWallSignals = 20'000;
inline constexpr std::uint64_t kRingsAt = std::uint64_t{2} << 20;

inline constexpr std::uint32_t kLeastRingBytes = 1 << 16, kMostRingBytes = 1 << 24;
inline constexpr std::uint32_t kLeastHz = 1, kMostHz = 1000;

/// What the timers count.
enum class Clock : std::uint32_t { kCpu, kWall };
enum class BeganAs : std::uint32_t { kProgram, kFork };

/// What sends the signals.
enum class TimerKind : std::uint32_t {
  kThread,   ///< one timer a thread
  kProcess,  ///< ITIMER_PROF, of the whole process: where the others cannot be had
};

inline constexpr std::size_t kWantedTids = 16;

// What different threads and processes write is in different lines of the cache.
struct Header {         // NOLINT(clang-analyzer-optin.performance.Padding)
  std::uint64_t magic;  ///< kMagic, written last
  std::uint32_t pid;    ///< as the process sees it: in its own namespace
  std::uint32_t parent_pid;
  std::uint64_t start_ns;  ///< CLOCK_MONOTONIC
  char command[16];        ///< as prctl(PR_GET_NAME) has it
  std::uint32_t began_as;  ///< BeganAs
  std::uint32_t clock;     ///< Clock
  std::uint32_t timer_kind;
  std::uint32_t hz;
  std::uint32_t stack_bytes;  ///< most that is copied of a stack
  std::uint32_t ring_bytes;   ///< a power of two
  std::uint32_t max_threads;
  std::uint32_t maps_bytes;

  alignas(64) std::uint32_t threads;  ///< slots that were ever taken: 0..threads-1
  std::uint32_t has_stopped;          ///< 1: sampling has ended before the process, as it asked
  std::uint64_t without_room;         ///< threads that found all slots taken
  std::uint64_t before_reader;      ///< ... or only those of ended threads, which await the reader
  std::uint64_t without_timer;      ///< threads whose timer the kernel refused
  std::uint64_t without_variables;  ///< threads begun by clone(2) in another's thread-local storage
  std::uint64_t strays;             ///< SIGPROF that was neither ours nor the program's
  std::uint64_t left_out;  ///< programs that were begun without the library, not to harm them

  /// Written by the reader: threads that sampling has not found itself.  0: none.
  alignas(64) std::uint32_t wanted_tids[kWantedTids];
};
static_assert(sizeof(Header) <= kMapsAt);

enum SlotState : std::uint32_t { kFree, kStarting, kLive, kEnded };

// NOLINTNEXTLINE(clang-analyzer-optin.performance.Padding): as in Header
struct alignas(64) Thread {
  std::uint32_t state;  ///< SlotState
  std::uint32_t tid;    ///< as the process sees it
  std::uint64_t start_ns;
  char name[16];  ///< as prctl(PR_GET_NAME) had it when the thread began or ended; may be empty

  // Written by the thread's handler; counts are never set back, either.
  alignas(64) std::uint64_t head;
  std::uint64_t samples;       ///< in the ring
  std::uint64_t weight;        ///< of those, in periods of the timer: overruns count
  std::uint64_t lost_samples;  ///< the ring was full
  std::uint64_t lost_weight;
  std::uint64_t cut_samples;  ///< of which less was copied than there is
  std::uint64_t cut_bytes;    ///< what was not, as far as that is known

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
  kStackIsCut = 1,      ///< it goes on, or may go on, behind what was copied
  kStackIsUnknown = 2,  ///< not the thread's own: copied up to the end of what is mapped
};

struct Sample {
  std::uint32_t bytes;  ///< of the record, with the stack; a multiple of eight
  std::uint32_t flags;
  std::uint32_t tid;
  std::uint32_t weight;   ///< periods of the timer that it stands for
  std::uint64_t time_ns;  ///< CLOCK_MONOTONIC_COARSE
  std::uint64_t registers[kRegisters];
  std::uint64_t stack_bytes;
};
static_assert(sizeof(Sample) == 168);

/// Where a record ends that begins at 0 and has so much stack.
constexpr std::uint64_t record_bytes(std::uint64_t stack_bytes) noexcept {
  constexpr std::uint64_t kAlign = 8;
  return (sizeof(Sample) + stack_bytes + kAlign - 1) / kAlign * kAlign;
}

/// How many threads of a process are sampled at one time, where memory allows.
constexpr std::uint32_t most_threads(Clock clock, std::uint32_t hz) noexcept {
  if (clock != Clock::kWall)
    return kMaxThreads;
  return std::clamp(kMostWallSignals / std::max(hz, std::uint32_t{1}), kFewestThreads, kMaxThreads);
}

constexpr std::uint64_t file_bytes(std::uint64_t max_threads, std::uint64_t ring_bytes) noexcept {
  return kRingsAt + max_threads * ring_bytes;
}

}  // namespace pe::inprocess

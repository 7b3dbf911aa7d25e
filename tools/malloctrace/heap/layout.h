// The data about its heap that a traced process keeps in memory that it shares with malloctrace.
//
// The process (the preload library in it) writes with plain stores and atomics.  Any holder of the
// memfd may read at any time, even after the process was killed.  The file is sparse: each section
// starts at a fixed offset, and its count in the header is its length.
//
//     Header
//     Module[]        mapped code, in the order in which the process met it
//     Code[]          each distinct address of a frame; numbers start at 1
//     byte[]          the stack of each site, which is a stack that has allocated: stack_list.h
//     SiteTotals[]    totals of each site; numbers start at 1
//     WideTotals[]    totals of sites that have outgrown SiteTotals; numbers start at 1
//     ThreadSums[]    counts of threads that are not in the sites' totals yet
//     Script[]        each distinct frame of an interpreter; numbers start at 1
//     byte[]          copies of the memory that names them
//
// Modules, codes, stacks and sites are complete before the header's count includes them, and only
// totals change afterwards.  The reader must check everything that it reads: the process is
// untrusted.
//
// Where numbers start at 1, number n is at index n of its section, and index 0 is unused.  A count
// of n means that 1..n exist.  Modules are 0..modules-1, slots of threads 0..threads-1.
//
// The whole process holds header.live_bytes plus live_bytes of all ThreadSums.  A site holds its
// totals' live_bytes plus those of all ThreadSums for it.  Every other number is added up likewise.
//
// The peak.  When the process is about to free memory and holds more than ever, it records
// peak_bytes and a new peak_version.  Totals of any kind have a `version`.  Before totals of
// another version than the header's change, they copy live_bytes to peak_bytes and adopt the
// header's version.  So at the peak they held peak_bytes if their version is the header's, else
// live_bytes.  If the process holds more than peak_bytes right now, the peak is now: every
// live_bytes is part of it.  The newest allocation reached it, at last_tick.
//
// Numbers are in host byte order.  Bytes are those that the program asked for, not those that the
// allocator spent.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>

#include "languages/registry.h"

namespace pe::heap {

inline constexpr std::uint64_t kMagic = 0x3570616568657073;  ///< "speheap5", the layout's version

/// The offset of each section, and the number of elements that it has room for.
inline constexpr std::uint64_t kModulesAt = std::uint64_t{1} << 20;
inline constexpr std::uint32_t kMaxModules = 1 << 14;
inline constexpr std::uint64_t kCodesAt = std::uint64_t{1} << 27;
inline constexpr std::uint32_t kMaxCodes = 1 << 22;
inline constexpr std::uint64_t kStacksAt = std::uint64_t{1} << 32;
inline constexpr std::uint32_t kMaxStackBytes = 1U << 31;
inline constexpr std::uint64_t kSitesAt = std::uint64_t{2} << 32;
inline constexpr std::uint32_t kMaxSites = 1 << 26;
inline constexpr std::uint64_t kWidesAt = std::uint64_t{3} << 32;
inline constexpr std::uint32_t kMaxWides = 1 << 22;
inline constexpr std::uint64_t kThreadsAt = std::uint64_t{4} << 32;
inline constexpr std::uint32_t kMaxThreads = 1 << 15;  ///< at one time; slots are reused
inline constexpr std::uint64_t kScriptsAt = std::uint64_t{5} << 32;
inline constexpr std::uint32_t kMaxScripts = 1 << 22;
inline constexpr std::uint64_t kCopiesAt = kScriptsAt + (std::uint64_t{1} << 30);
inline constexpr std::uint32_t kMaxCopiedBytes = 1U << 31;
inline constexpr std::uint64_t kFileBytes = std::uint64_t{6} << 32;

// live_bytes changes at other times than the fields that follow peak_bytes.
struct Header {         // NOLINT(clang-analyzer-optin.performance.Padding)
  std::uint64_t magic;  ///< kMagic, written last
  std::uint32_t pid;
  std::uint32_t parent_pid;
  std::uint64_t start_ns;      ///< CLOCK_MONOTONIC when tracing started
  char command[16];            ///< as prctl(PR_GET_NAME) returns it
  std::uint64_t sample_bytes;  ///< 0: exact; else counts are in units of 1/256, see kCountUnit
  std::uint32_t max_depth;     ///< 0: unlimited

  /// Written by malloctrace: the time since it started, in units of `tick_ms`.
  std::uint32_t tick;
  std::uint32_t tick_ms;
  std::uint32_t began_as;   ///< BeganAs
  std::uint32_t has_ended;  ///< 1: the process left by exit(3), or we saw its _exit(2)

  /// Counts; of threads: slots used.  Each is copied to readers before those that it depends on.
  std::uint32_t sites, stack_bytes, codes, scripts, copied_bytes, modules, wides, threads;
  std::uint32_t last_tick;  ///< of the newest allocation of any thread, and of a peak that is now

  // Sums of the whole process.
  alignas(64) std::int64_t live_bytes;  ///< reported by threads; the rest is in ThreadSums
  /// Bytes that the thread of slot 0 held and had not reported when others started; below 0: it has
  /// reported since.  The others need it to know the peak.  No sum includes it.
  std::int64_t alone_bytes;
  alignas(64) std::int64_t peak_bytes;  ///< see above
  std::uint32_t peak_version;
  std::uint32_t peak_tick;
  std::uint32_t has_threads;  ///< 1: several threads have allocated: the peak is within slack
  std::uint32_t is_closed;    ///< 1: tracing has ended early: the process forbids itself calls
  std::uint64_t slack_bytes;  ///< the maximum error of the peak

  // Failures, and calls that were no ordinary allocation.
  std::uint64_t failed;             ///< allocations that the allocator refused
  std::uint64_t unknown_frees;      ///< of blocks whose allocation we never saw
  std::uint64_t inherited_frees;    ///< of blocks that a parent process allocated, or may have
  std::uint64_t cut_stacks;         ///< by --depth, or because there was no room
  std::uint64_t incomplete_stacks;  ///< that could not be walked to their end
  std::uint64_t dropped;            ///< allocations not counted: no room, or in the tracer itself
  std::uint64_t full;               ///< of the dropped ones: a section had no room
  std::uint64_t early;              ///< allocations before the tracer could trace
  /// Usable bytes of the blocks in unknown_frees, if the tracer came while the program ran
  /// (kRunning) and the allocator is glibc's.
  std::uint64_t earlier_freed_bytes;

  // The tracer's own cost.
  std::uint64_t walks, frames_walked, frames_reused;
  std::uint64_t private_bytes;  ///< touched memory outside this file, as far as the tracer knows

  // Anonymous writable memory that the program has mapped itself (mmap(2)), if mappings do not
  // count as allocations.
  std::uint64_t mapped_bytes, mapped_count;            ///< in total
  std::uint64_t mapped_live_bytes, mapped_peak_bytes;  ///< held now, and at most
  std::uint64_t mapped_top_bytes;                      ///< in total, of the site that maps most
  std::uint32_t mapped_top_site;                       ///< its number; 0: none
  std::uint32_t unused_mapped;
  std::uint64_t resident_peak_bytes;  ///< VmHWM when the process ended; 0: not known

  languages::ScriptLayout script_layout;
  std::uint32_t has_script_layout;  ///< 1: the layout is valid; written last
  std::uint32_t counts_objects;     ///< 1: the blocks of the interpreter's own allocator count
};

enum class BeganAs : std::uint32_t { kProgram, kFork, kRunning };

/// A mapping of code.  It gives the addresses in it their symbols.
struct Module {
  std::uint64_t start, end;  ///< avma of the executable mapping
  std::uint64_t file_offset;
  std::uint32_t major, minor;  ///< of the device
  std::uint64_t inode;         ///< 0: no file
  std::uint32_t number;        ///< of loading: later ones may replace earlier ones
  std::uint32_t path_length;
  char path[968];  ///< not terminated; longer ones are cut
};
static_assert(sizeof(Module) == 1024 - 8);

/// The address of a frame.
struct Code {
  std::uint64_t avma : 48;    ///< as in a call chain: the return address, or the exact one
  std::uint32_t module : 15;  ///< number of the Module in its section, plus one; 0: none known
  std::uint32_t is_exact : 1;
};
static_assert(sizeof(Code) == 8);

/// The module of a code that is no address, but a frame of an interpreter: `avma` is the number of
/// its Script.  In a stack all frames of the interpreter are outside of the native ones.
inline constexpr std::uint32_t kScriptModule = (1 << 15) - 1;
static_assert(kMaxModules < kScriptModule);

/// A frame of an interpreter: languages::ScriptFrame.
struct Script {
  std::uint64_t code;  ///< avma of its code object; kNoCode: the outer frames are missing
  std::uint32_t place, mark;
  std::uint32_t ends_call;
  /// Copies of the code object and of the objects that it names, for languages::Interpreter.  Each
  /// is its avma, its number of bytes, and these, padded to a multiple of 8.
  std::uint32_t copies, copied_bytes;  ///< where they start in the section, and how many bytes
  std::uint32_t unused;
};
static_assert(sizeof(Script) == 32);

/// With sampling, counts are estimates in units of 1/256.
inline constexpr std::uint32_t kCountUnit = 256;

/// Everything that is known about a site.
struct Totals {
  std::uint64_t allocated_bytes, allocated_count;
  std::int64_t live_bytes, live_count;
  std::uint64_t temporary_count;  ///< freed before its thread allocated again
  std::int64_t peak_bytes;        ///< see above
  std::uint32_t version;
  std::uint32_t first_tick, last_tick;  ///< of its allocations
  std::uint32_t unused;
};
static_assert(sizeof(Totals) == 64);

/// Totals in a quarter of the space, of a site whose blocks have one size; nearly all sites do.
struct SiteTotals {
  static constexpr unsigned kBytesBits = 22, kCountBits = 11, kTickBits = 18, kVersionBits = 24;

  std::uint64_t is_wide : 1;         ///< 1: all fields but the next one are meaningless
  std::uint64_t bytes : kBytesBits;  ///< of a block; if wide: the number of its WideTotals
  std::uint64_t allocated_count : kCountBits;
  std::uint64_t live_count : kCountBits;
  std::uint64_t first_tick : kTickBits;
  std::uint64_t temporary_count : kCountBits;
  std::uint64_t peak_count : kCountBits;  ///< peak_bytes are those of this many blocks
  std::uint64_t version : kVersionBits;
  std::uint64_t last_tick : kTickBits;
};
static_assert(sizeof(SiteTotals) == 16);
static_assert(kMaxWides <= std::uint32_t{1} << SiteTotals::kBytesBits);

/// Returns the same totals with room to grow.  `narrow` must not be wide.
inline Totals widened(const SiteTotals& narrow) noexcept {
  const std::uint64_t bytes = narrow.bytes;
  return {.allocated_bytes = narrow.allocated_count * bytes,
          .allocated_count = narrow.allocated_count,
          .live_bytes = static_cast<std::int64_t>(narrow.live_count * bytes),
          .live_count = static_cast<std::int64_t>(narrow.live_count),
          .temporary_count = narrow.temporary_count,
          .peak_bytes = static_cast<std::int64_t>(narrow.peak_count * bytes),
          .version = static_cast<std::uint32_t>(narrow.version),
          .first_tick = static_cast<std::uint32_t>(narrow.first_tick),
          .last_tick = static_cast<std::uint32_t>(narrow.last_tick),
          .unused = 0};
}

/// Returns the number of blocks that `bytes` are; out of range if they are no whole number.
inline std::uint64_t blocks_of(std::int64_t bytes, std::uint64_t of_block) noexcept {
  if (bytes == 0)
    return 0;
  const auto all = static_cast<std::uint64_t>(bytes);
  return of_block == 0 || all % of_block != 0 ? ~std::uint64_t{0} : all / of_block;
}

/// Stores the totals in `narrow`; false, and no change, if they do not fit.
inline bool narrow_down(const Totals& totals, SiteTotals& narrow) noexcept {
  using Narrow = SiteTotals;
  const std::uint64_t count = totals.allocated_count;
  if (count == 0 || count >> Narrow::kCountBits != 0)
    return false;
  const std::uint64_t bytes = totals.allocated_bytes / count;
  const auto live_count = static_cast<std::uint64_t>(totals.live_count);
  const std::uint64_t peak_count = blocks_of(totals.peak_bytes, bytes);
  if (bytes * count != totals.allocated_bytes || bytes >> Narrow::kBytesBits != 0 ||
      live_count * bytes != static_cast<std::uint64_t>(totals.live_bytes) ||
      (live_count | totals.temporary_count | peak_count) >> Narrow::kCountBits != 0 ||
      totals.version >> Narrow::kVersionBits != 0 ||
      (totals.first_tick | totals.last_tick) >> Narrow::kTickBits != 0)
    return false;
  SiteTotals fits{};
  fits.bytes = bytes;
  fits.allocated_count = count;
  fits.live_count = live_count;
  fits.first_tick = totals.first_tick;
  fits.temporary_count = totals.temporary_count;
  fits.peak_count = peak_count;
  fits.version = totals.version;
  fits.last_tick = totals.last_tick;
  narrow = fits;
  return true;
}

using WideTotals = Totals;

/// A thread's own sums, so that threads do not wait for each other.  They are added to the site's
/// totals when another site needs the place.  One cache line each.
struct alignas(64) ThreadSum {
  std::uint32_t site;  ///< 0: none, and the other fields are meaningless
  std::uint32_t version;
  std::uint64_t allocated_bytes, allocated_count;
  std::int64_t live_bytes, live_count;
  std::uint64_t temporary_count;
  std::int64_t peak_bytes;
  std::uint32_t first_tick, last_tick;  ///< meaningless while allocated_count is 0
};
static_assert(sizeof(ThreadSum) == 64);

inline constexpr std::uint32_t kSumsOfThread = 512;
struct ThreadSums {
  std::uint32_t tid;  ///< 0: the slot is free
  std::uint32_t unused;
  std::int64_t live_bytes;  ///< not reported to the header yet
  ThreadSum sums[kSumsOfThread];
};
static_assert(sizeof(ThreadSums) * kMaxThreads <= kScriptsAt - kThreadsAt);
static_assert(sizeof(Script) * kMaxScripts <= kCopiesAt - kScriptsAt);
static_assert(kMaxCopiedBytes <= kFileBytes - kCopiesAt);

// The stacks of sites in the shared memory: the format, and how it is written.
//
// Each site has one entry, in the order of the sites' numbers.  An entry tells how its stack
// differs from the last one that the same thread added:
//
//     number      2 * the frames that were dropped from that stack, innermost first (kAllFrames:
//                 all); plus 1 if the entry is of another thread than the entry before (before the
//                 first: slot 0)
//     number      the slot of the thread; only after an odd number
//     number      the frames that were added, outermost first
//     byte[]      a bit for each of them, the lowest first: 1 if it is the expected one
//     number[]    the number of the heap::Code of each that is not
//
// The expected frame is the one that was added last, by any thread, to the frame outside of it
// (0: to an empty stack).  A number is LEB128.  Two of three frames are expected, and so an entry
// of a compiler takes eight bytes.

inline constexpr std::uint32_t kAllFrames = 0x7fffffff;
inline constexpr unsigned kPartBits = 7;  ///< of a LEB128 number in a byte

/// The most bytes of an entry; numbers of codes and counts of frames are below 2^28.
constexpr std::uint64_t most_bytes_of_entry(std::uint64_t added) noexcept {
  constexpr std::uint64_t kNumberBytes = 5;
  return 3 * kNumberBytes + added / 8 + 1 + 4 * added;
}

/// A stack as a difference.
struct StackChange {
  std::uint32_t dropped, added;
  std::uint32_t slot;
  bool is_other;  ///< whether the slot is another than in the entry before
};

/// Writes an entry and returns the byte after it.  `code(i)` is the code of the added frame i,
/// `outside` that of the frame outside of them, 0 if there is none.  `expected` has an element for
/// each code and for 0.
template <typename CodeOf, typename Expected>
std::uint8_t* write_stack(std::uint8_t* out, const StackChange& change, std::uint32_t outside,
                          CodeOf code, Expected& expected) noexcept {
  const auto put = [&out](std::uint64_t value) {
    for (; value >> kPartBits != 0; value >>= kPartBits)
      *out++ = static_cast<std::uint8_t>(value | 1U << kPartBits);
    *out++ = static_cast<std::uint8_t>(value);
  };
  put(std::uint64_t{change.dropped} * 2 + (change.is_other ? 1 : 0));
  if (change.is_other)
    put(change.slot);
  put(change.added);
  std::uint8_t* bits = out;
  for (std::uint32_t i = 0; i < change.added; i += 8)
    *out++ = 0;
  for (std::uint32_t i = 0; i < change.added; ++i) {
    const std::uint32_t next = code(i);
    if (expected[outside] == next)
      bits[i / 8] = static_cast<std::uint8_t>(bits[i / 8] | 1U << i % 8);
    else
      put(next);
    expected[outside] = next;
    outside = next;
  }
  return out;
}

}  // namespace pe::heap

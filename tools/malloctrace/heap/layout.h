// What a traced process keeps about its heap, in memory that it shares with malloctrace.
//
// The process (the preload library in it) writes, with plain stores and atomics; whoever has the
// memfd reads at any time, also after the process has been killed.  The file is sparse: each
// section begins at a fixed place and is as long as its count in the header says.
//
//     Header
//     Module[]        what code is mapped where; in the order in which they were met
//     Code[]          each different address of a frame; numbers from 1 on
//     word[]          the tree of stacks, see below; number 0 is the root
//     SiteTotals[]    of each site: a stack that has allocated.  Numbers from 1 on
//     WideTotals[]    of sites whose numbers have outgrown SiteTotals; numbers from 1 on
//     ThreadSums[]    what threads have counted and not added to the sites' totals yet
//
// The tree of stacks, root first, is made of 32-bit words.  A word is the number of a Code; its
// parent is the word before.  Where a node has another child, that stands elsewhere, right behind
// a word kHead | number of the parent.  A site is a child kSite of its stack's innermost frame,
// followed by a word kHead | number of the site.  (A child by one step needs no index: nine of ten
// nodes of real programs have only one.)
//
// Words, codes, modules and sites are complete before the header's count includes them, and never
// change after.  Everything that is read must be checked by its reader: the process may be hostile.
//
// Where numbers begin with 1, number n stands at index n of its section, index 0 is unused, and a
// count of n says that 1..n are there.  Words are 0..words-1, modules 0..modules-1, slots of
// threads 0..threads-1.
//
// What the whole process holds is header.live_bytes plus live_bytes of all ThreadSums; what a site
// holds is its totals' plus those of all ThreadSums for it, and so for every other number.
//
// The peak.  When memory is about to be freed and the process holds more than ever, that is noted:
// peak_bytes, and a new peak_version.  Before anything changes in totals of any kind whose
// `version` is not the header's, they keep their live_bytes as peak_bytes and take over the
// version.  So what they held at the peak is peak_bytes if the version is the header's, else
// live_bytes.  If the process holds more than peak_bytes just now, the peak is now: every
// live_bytes.  It was reached by the newest allocation: last_tick.
//
// Numbers in host order.  Bytes are what the program asked for, not what the allocator spent.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>

namespace pe::heap {

inline constexpr std::uint64_t kMagic = 0x3170616568657073;  ///< "spheheap1", the layout's version
inline constexpr std::uint32_t kHead = 0x80000000;
inline constexpr std::uint32_t kSite = 0x7fffffff;

/// Offsets of the sections, and how many elements each has room for.
inline constexpr std::uint64_t kModulesAt = std::uint64_t{1} << 20;
inline constexpr std::uint32_t kMaxModules = 1 << 14;
inline constexpr std::uint64_t kCodesAt = std::uint64_t{1} << 27;
inline constexpr std::uint32_t kMaxCodes = 1 << 22;
inline constexpr std::uint64_t kWordsAt = std::uint64_t{1} << 32;
inline constexpr std::uint32_t kMaxWords = 1U << 29;
inline constexpr std::uint64_t kSitesAt = std::uint64_t{2} << 32;
inline constexpr std::uint32_t kMaxSites = 1 << 26;
inline constexpr std::uint64_t kWidesAt = std::uint64_t{3} << 32;
inline constexpr std::uint32_t kMaxWides = 1 << 22;
inline constexpr std::uint64_t kThreadsAt = std::uint64_t{4} << 32;
inline constexpr std::uint32_t kMaxThreads = 1 << 15;  ///< at one time; slots are used again
inline constexpr std::uint64_t kFileBytes = std::uint64_t{6} << 32;

// live_bytes and what follows peak_bytes change at different times.
struct Header {         // NOLINT(clang-analyzer-optin.performance.Padding)
  std::uint64_t magic;  ///< kMagic, written last
  std::uint32_t pid;
  std::uint32_t parent_pid;
  std::uint64_t start_ns;      ///< CLOCK_MONOTONIC, when tracing began
  char command[16];            ///< as prctl(PR_GET_NAME) has it
  std::uint64_t sample_bytes;  ///< 0: exact; else counts are in units of 1/256, see kCountUnit
  std::uint32_t max_depth;     ///< 0: unlimited

  /// Written by malloctrace: the time since it began, in `tick_ms`.
  std::uint32_t tick;
  std::uint32_t tick_ms;
  std::uint32_t began_as;   ///< BeganAs
  std::uint32_t has_ended;  ///< 1: the process has left by exit(3), or _exit(2) was seen

  std::uint32_t modules, codes, words, sites, wides, threads;  ///< how many; of threads: slots used
  std::uint32_t last_tick;  ///< of the newest allocation of any thread: when there was most

  // Of the whole process.
  alignas(64) std::int64_t live_bytes;  ///< what threads have told; the rest is in ThreadSums
  /// What the thread of slot 0 held, and had not told, when others began; below 0: it has told
  /// since.  So that the others know the peak; in no sum.
  std::int64_t alone_bytes;
  alignas(64) std::int64_t peak_bytes;  ///< see above
  std::uint32_t peak_version;
  std::uint32_t peak_tick;
  std::uint32_t has_threads;  ///< 1: more than one thread has allocated: the peak is within slack
  std::uint32_t unused;
  std::uint64_t slack_bytes;  ///< the most by which the peak may be off

  // What could not be done, or was no ordinary allocation.
  std::uint64_t failed;             ///< allocations that the allocator refused
  std::uint64_t unknown_frees;      ///< of blocks that were never seen to be allocated
  std::uint64_t inherited_frees;    ///< of blocks that a parent process had allocated, or may have
  std::uint64_t cut_stacks;         ///< by --depth, or by room for one
  std::uint64_t incomplete_stacks;  ///< that could not be walked to their end
  std::uint64_t dropped;            ///< allocations not counted: no room, or in the tracer itself
  std::uint64_t full;               ///< of those: no room in a section
  std::uint64_t early;              ///< allocations before the tracer could trace

  // The tracer's own cost.
  std::uint64_t walks, frames_walked, frames_reused;
  std::uint64_t private_bytes;  ///< touched, as far as it knows: what is not in this file

  // What the program has mapped itself (mmap(2), anonymous and writable), where that does not count
  // as allocations.
  std::uint64_t mapped_bytes, mapped_count;            ///< in all
  std::uint64_t mapped_live_bytes, mapped_peak_bytes;  ///< held now, and at most
  std::uint64_t mapped_top_bytes;                      ///< in all, of the site that maps most
  std::uint32_t mapped_top_site;                       ///< its number; 0: none
  std::uint32_t unused_mapped;
  std::uint64_t resident_peak_bytes;  ///< VmHWM when the process ended; 0: not known
};

enum class BeganAs : std::uint32_t { kProgram, kFork };

/// Code that is mapped, and by which the addresses in it are named.
struct Module {
  std::uint64_t start, end;  ///< avma of the executable mapping
  std::uint64_t file_offset;
  std::uint32_t major, minor;  ///< of the device
  std::uint64_t inode;         ///< 0: no file
  std::uint32_t number;        ///< of loading: later ones may stand where earlier ones were
  std::uint32_t path_length;
  char path[968];  ///< not terminated; longer ones are cut
};
static_assert(sizeof(Module) == 1024 - 8);

/// An address that a frame has.
struct Code {
  std::uint64_t avma;    ///< as in a call chain: the return address, or the exact one
  std::uint32_t module;  ///< number of the Module in its section, plus one; 0: none known
  std::uint32_t is_exact;
};
static_assert(sizeof(Code) == 16);

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

/// Totals in little more than half the room, which nearly all sites fit into.
struct SiteTotals {
  /// If nonzero: number of the WideTotals that stand for this, and the rest means nothing.
  std::uint32_t wide;
  std::uint32_t allocated_bytes, allocated_count, temporary_count;
  std::int32_t live_bytes, live_count, peak_bytes;
  std::uint32_t version;
  std::uint32_t first_tick, last_tick;
};
static_assert(sizeof(SiteTotals) == 40);

/// The same, with room to grow; of what `wide` does not stand for.
inline Totals widened(const SiteTotals& narrow) noexcept {
  return {.allocated_bytes = narrow.allocated_bytes,
          .allocated_count = narrow.allocated_count,
          .live_bytes = narrow.live_bytes,
          .live_count = narrow.live_count,
          .temporary_count = narrow.temporary_count,
          .peak_bytes = narrow.peak_bytes,
          .version = narrow.version,
          .first_tick = narrow.first_tick,
          .last_tick = narrow.last_tick,
          .unused = 0};
}

using WideTotals = Totals;

/// A thread's own sums, so that threads do not wait for each other.  Added to the site's totals
/// when another site needs the place.  One cache line.
struct alignas(64) ThreadSum {
  std::uint32_t site;  ///< 0: none, and the rest means nothing
  std::uint32_t version;
  std::uint64_t allocated_bytes, allocated_count;
  std::int64_t live_bytes, live_count;
  std::uint64_t temporary_count;
  std::int64_t peak_bytes;
  std::uint32_t first_tick, last_tick;  ///< mean nothing while allocated_count is 0
};
static_assert(sizeof(ThreadSum) == 64);

inline constexpr std::uint32_t kSumsOfThread = 512;
struct ThreadSums {
  std::uint32_t tid;  ///< 0: the slot is free
  std::uint32_t unused;
  std::int64_t live_bytes;  ///< not told to the header yet
  ThreadSum sums[kSumsOfThread];
};
static_assert(sizeof(ThreadSums) * kMaxThreads <= kFileBytes - kThreadsAt);

}  // namespace pe::heap

// The heap of a process as it was when it was read: where blocks were allocated, how many, and what
// is still held.
//
// Made from what the process shares (layout.h), which may be anything: every number has been
// checked, and what contradicts itself is counted.  Of a process that runs on, sums may be off by
// what its threads did while they were read; of one that has ended they are exact.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "malloctrace/heap/layout.h"
#include "malloctrace/heap/shared_file.h"

namespace pe::heap {

/// The sums of a site, those of all threads added.  Numbers of allocations are in the header's
/// unit, see whole().
struct Sums {
  std::uint64_t allocated_bytes = 0, allocated_count = 0;
  std::uint64_t live_bytes = 0, live_count = 0;  ///< held when it was read
  std::uint64_t peak_bytes = 0;                  ///< held when the process held most
  std::uint64_t temporary_count = 0;
  std::uint32_t first_tick = 0, last_tick = 0;  ///< of its allocations; meaningless without any
};

struct Site {
  Sums sums;
  std::uint32_t node = 0;  ///< its stack's innermost frame, for Heap::stack(); 0: not known
};

struct Frame {
  std::uint64_t avma;    ///< the return address, or where `is_exact` the instruction's own
  std::uint32_t module;  ///< index into Heap::modules plus one; 0: none known
  bool is_exact;
};

struct Heap {
  Header header{};                   ///< `command` ends with a NUL
  std::vector<Module> modules;       ///< `path_length` is within path, `end` above start
  std::vector<Code> codes;           ///< by number less one
  std::vector<std::uint32_t> words;  ///< the tree of stacks
  std::vector<Site> sites;           ///< by number less one
  std::uint64_t file_bytes = 0;      ///< what the file takes of memory
  std::uint64_t damaged = 0;         ///< numbers that contradict others
  std::uint64_t peak_bytes = 0;      ///< the most that was held at once

  /// More frames than a record of the sample stream has room for are of no use.
  static constexpr std::size_t kMaxFrames = 8'000;

  /// The frames of a site, innermost first, into `frames`; false if there were more than
  /// kMaxFrames, and the outermost are missing.
  bool stack(const Site& site, std::vector<Frame>& frames) const;

  /// A number of allocations: counted ones as they are, estimated ones rounded.
  [[nodiscard]] std::uint64_t whole(std::uint64_t count) const noexcept {
    return header.sample_bytes == 0 ? count
                                    : count / kCountUnit + (count % kCountUnit >= kCountUnit / 2);
  }

  /// The sums of all sites.
  [[nodiscard]] Sums total() const noexcept;

  /// By how much peak_bytes may be above the true peak, being the greatest of many estimates; 0 if
  /// it is none.  An estimate of x held bytes has a standard error of sqrt(x * sample_bytes) at
  /// most (a sample of s bytes stands for s / p bytes, p = 1 - exp(-s / sample_bytes), and adds
  /// (1 - p) (s / p)^2 to the variance), and the greatest of thousands is about four above.
  [[nodiscard]] std::uint64_t peak_excess_bytes() const noexcept;
};

/// nullopt if the file is no shared memory of a process any more.
std::optional<Heap> read_heap(const SharedFile& file);

}  // namespace pe::heap

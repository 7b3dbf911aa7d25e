// The heap of a process as it was when we read it: where the process allocated blocks, how many,
// and how much it still holds.
//
// It is built from the memory that the process shares (layout.h).  That memory is untrusted: every
// number is checked, and contradictions are counted.  If the process still runs, its threads may
// change sums while they are read, and the sums are off by that much.  If it has ended, they are
// exact.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "malloctrace/heap/layout.h"
#include "malloctrace/heap/shared_file.h"
#include "malloctrace/heap/stack_tree.h"

namespace pe::heap {

/// The sums of a site over all threads.  Numbers of allocations are in the header's unit, see
/// whole().
struct Sums {
  std::uint64_t allocated_bytes = 0, allocated_count = 0;
  std::uint64_t live_bytes = 0, live_count = 0;  ///< held when it was read
  std::uint64_t peak_bytes = 0;                  ///< held when the process held most
  std::uint64_t temporary_count = 0;
  std::uint32_t first_tick = 0, last_tick = 0;  ///< of its allocations; meaningless without any
};

struct Site {
  Sums sums;
  std::uint32_t node = 0;  ///< its stack's innermost frame in Heap::stacks; 0: not known
};

struct Frame {
  std::uint64_t avma;    ///< the return address, or if `is_exact` the instruction's own
  std::uint32_t module;  ///< index into Heap::modules plus one; 0: none known
  bool is_exact;
};

struct Heap {
  Header header{};              ///< `command` ends with a NUL
  std::vector<Module> modules;  ///< `path` is unescaped, `end` is not below start
  std::vector<Code> codes;      ///< index: number - 1
  StackTree stacks;
  std::vector<Site> sites;       ///< index: number - 1
  std::uint64_t file_bytes = 0;  ///< memory that the file uses
  std::uint64_t damaged = 0;     ///< numbers that contradict others
  std::uint64_t peak_bytes = 0;  ///< the most that was held at once

  /// A record of the sample stream has no room for more frames.
  static constexpr std::size_t kMaxFrames = 8'000;

  /// Stores the frames of a site in `frames`, innermost first.  False if there were more than
  /// kMaxFrames: the outermost ones are then missing.
  bool stack(const Site& site, std::vector<Frame>& frames) const;

  /// Returns a number of allocations: exact counts unchanged, estimates rounded.
  [[nodiscard]] std::uint64_t whole(std::uint64_t count) const noexcept {
    return header.sample_bytes == 0 ? count
                                    : count / kCountUnit + (count % kCountUnit >= kCountUnit / 2);
  }

  /// Returns the sums over all sites.
  [[nodiscard]] Sums total() const noexcept;

  /// Returns by how much peak_bytes may exceed the true peak, because it is the greatest of many
  /// estimates; 0 if it is not an estimate.  An estimate of x held bytes has a standard error of at
  /// most sqrt(x * sample_bytes).  A sample of s bytes represents s / p bytes, p = 1 - exp(-s /
  /// sample_bytes).  It adds (1 - p) (s / p)^2 to the variance.  The greatest of thousands is about
  /// four standard errors too high.
  [[nodiscard]] std::uint64_t peak_excess_bytes() const noexcept;
};

/// nullopt if the file is no longer the shared memory of a process.
std::optional<Heap> read_heap(const SharedFile& file);

}  // namespace pe::heap

// Counts how stacks ended, for the closing line.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "unwind/walk/frame.h"

namespace pe::unwind {

struct StackCounts {
  std::uint64_t stacks = 0;        ///< of programs: samples with registers and stack
  std::uint64_t complete = 0;      ///< up to the thread's first function, whether continued or not
  std::uint64_t from_earlier = 0;  ///< of `complete`: continued from an earlier stack
  std::uint64_t from_process = 0;  ///< of `complete`: continued from the process's memory
  std::uint64_t unread = 0;        ///< samples whose memory was not read, to limit the reading
  std::uint64_t cut = 0;           ///< incomplete because the copy ended
  std::uint64_t cut_bytes = 0;     ///< size of the copy of the last of them
  std::uint64_t foreign = 0;       ///< not walked: of programs with another word size
  std::uint64_t by_frame_pointer = 0;  ///< frames whose callees no call frame information covers
  std::uint64_t by_leaf = 0;           ///< likewise, and without a frame pointer
  std::map<std::pair<std::string, Stop>, std::uint64_t> ended;  ///< others, by module
  std::map<std::string, std::uint64_t> unopened;  ///< others, whose module could not be opened
};

/// Describes the counts: "98.9 % of stacks complete; 312 continued in the process's memory; 120
/// ended in libfoo.so: no unwind info; 4 cut at 64 KiB"; empty if there were no stacks.
std::string describe(const StackCounts& counts);
/// Returns the first part of that, "98.9 % of stacks complete"; empty if there were no stacks.
std::string describe_share(const StackCounts& counts);
/// Returns the other parts.
std::string describe_rest(const StackCounts& counts);
/// Returns where most incomplete stacks ended: "ended in libfoo.so: no unwind info", "were cut at
/// 64 KiB"; empty if that is not known.
std::string most_common_end(const StackCounts& counts);
/// Returns the size of the copies that cut stacks, in KiB.
std::uint64_t cut_kib(const StackCounts& counts);

}  // namespace pe::unwind

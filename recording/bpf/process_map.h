// The executable mappings of one process, in the form that the kernel's unwinder reads.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "recording/bpf/layout.h"
#include "recording/bpf/packed_images.h"
#include "stream/proc/process_table.h"

namespace pe::unwind {

constexpr bool operator==(const Mapping& a, const Mapping& b) noexcept {
  return a.start == b.start && a.end == b.end && a.base == b.base && a.index == b.index &&
         a.rows == b.rows;
}

struct ProcessMap {
  std::vector<Mapping> mappings = {};  ///< at most kMaxMappings, as in ProcessMappings
  std::size_t left_out = 0;  ///< mappings of files without room, and mappings beyond that number

  bool operator==(const ProcessMap&) const = default;
};

/// Packs files that are not packed yet.  If there are too many mappings, those of files with tables
/// stay, and the newest of the others.  A process that compiles code at run time maps ever more of
/// it, and the kernel does not record what the process unmaps.
ProcessMap map_of(const stream::AddressSpace& space, std::uint32_t pid, PackedImages& images);

}  // namespace pe::unwind

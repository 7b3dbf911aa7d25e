// Reports what the kernel's unwinder did to limit its own time, and the memory that it uses.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <string_view>

#include "base/cli/closing.h"
#include "recording/bpf/bpf_object.h"

namespace pe::recording {

/// Adds the walks that ended at a limit (bpf/limits.bpf.h), and the process that had most of them.
/// `for_less` is the fix if long walks would have taken too much of a CPU.
void describe_limits(const unwind::LimitedWalks& walks, std::string_view for_less,
                     Closing& closing);

/// Adds the memory that the programs use in the kernel.
void describe_memory(const unwind::KernelMemory& memory, Closing& closing);

/// Samples that have another sample's stack: bpf/thinning.bpf.h.
struct ThinnedCounts {
  std::uint64_t thinned = 0;
  std::uint64_t alone = 0;  ///< of these: ThinnedSamples::written_alone()
  std::uint32_t budget_percent = 0;
};
/// Adds these counts.
void describe_thinning(const ThinnedCounts& counts, Closing& closing);

}  // namespace pe::recording

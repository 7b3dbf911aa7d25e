// Reports the stacks that the kernel's unwinder cut to limit its own time.
// SPDX-License-Identifier: MIT
#pragma once

#include <string_view>

#include "base/cli/closing.h"
#include "recording/bpf/bpf_object.h"

namespace pe::recording {

/// Adds the walks that ended at a limit (bpf/limits.bpf.h), and the process that had most of them.
/// `for_less` is the fix if long walks would have taken too much of a CPU.
void describe_limits(const unwind::LimitedWalks& walks, std::string_view for_less,
                     Closing& closing);

}  // namespace pe::recording

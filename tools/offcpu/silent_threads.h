// Threads of which nothing was recorded: most of them waited all the time.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <functional>

#include "base/cli/closing.h"
#include "recording/request.h"

namespace pe::offcpu {

/// Counts the live threads of the target that `has_seen` does not know.
std::uint64_t count_silent_threads(const recording::Target& target,
                                   const std::function<bool(std::uint32_t tid)>& has_seen);

/// Adds "1 thread of which no wait ended …", if there is any.
void describe_silent_threads(std::uint64_t count, Closing& closing);

}  // namespace pe::offcpu

// Threads of which nothing was recorded: most of them waited all the time.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "record/request.h"

namespace pe::offcpu {

/// Counts the live threads of the target that `has_seen` does not know.
std::uint64_t count_silent_threads(const record::Target& target,
                                   const std::function<bool(std::uint32_t tid)>& has_seen);

/// For the closing line: "; 1 thread of which no wait ended ...", or empty.
std::string describe_silent_threads(std::uint64_t count);

}  // namespace pe::offcpu

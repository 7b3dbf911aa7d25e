// The root frame that says when the stacks below it were counted: "@12.300", in seconds.
//
// This is the only parser and the only printer of such frames.  folded(5) has the grammar.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace pe::folded {

/// Returns the time in nanoseconds; nullopt if the frame is another one, or its time does not fit.
std::optional<std::uint64_t> parse_time_root(std::string_view frame);

/// Returns the frame of a time.  All frames of a profile have as many digits as that of its
/// `last_ns`, so that the order of the texts is that of time, and 0, 3, 6 or 9 decimals, as
/// multiples of `step_ns` need.
std::string time_root(std::uint64_t ns, std::uint64_t last_ns, std::uint64_t step_ns);

}  // namespace pe::folded

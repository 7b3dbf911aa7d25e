// Formats names of frames for people and programs.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace pe::stacktop {

/// Makes a name safe for a terminal and for a table with one line a row.  Control characters, also
/// those beyond ASCII, marks that change the direction of writing, and bytes that are not UTF-8
/// become \xNN.  An empty name becomes "[no name]".
std::string shown(std::string_view name);

/// Returns the columns of `text`, one for each character.  `text` must come from shown().
std::size_t columns_of(std::string_view text);

/// Shortens `text` to at most `columns` columns and replaces its middle by "...".  The ends of
/// names of C++ functions distinguish them as often as the beginnings.
std::string shortened(std::string_view text, std::size_t columns);

}  // namespace pe::stacktop

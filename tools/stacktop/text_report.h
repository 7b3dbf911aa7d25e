// Prints a report as a table for people.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "base/io/output.h"
#include "stacktop/options.h"
#include "stacktop/report.h"

namespace pe::stacktop {

// Decides how a table looks, by what its output can show.

struct Look {
  bool has_bars = false;
  bool has_color = false;
  bool is_utf8 = false;                ///< bars of blocks instead of '#'
  std::optional<std::size_t> columns;  ///< longer names are shortened
};

/// A terminal gets its width, and colour unless NO_COLOR is set.  Other outputs get plain text.
/// The options override both.
Look look_of(const Output& out, const Options& options);

// Formats names of frames for people and programs.

/// Makes a name safe for a terminal and for a table with one line a row.  Control characters, also
/// those beyond ASCII, marks that change the direction of writing, and bytes that are not UTF-8
/// become \xNN.  An empty name becomes "[no name]".
std::string shown(std::string_view name);

/// Returns the columns of `text`, one for each character.  `text` must come from shown().
std::size_t columns_of(std::string_view text);

/// Shortens `text` to at most `columns` columns and replaces its middle by "...".  The ends of
/// names of C++ functions distinguish them as often as the beginnings.
std::string shortened(std::string_view text, std::size_t columns);

void write_text(const Report& report, const Look& look, Output& out);

}  // namespace pe::stacktop

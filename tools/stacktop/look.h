// Decides how a table looks, by what its output can show.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <optional>

#include "base/io/output.h"
#include "stacktop/options.h"

namespace pe::stacktop {

struct Look {
  bool has_bars = false;
  bool has_color = false;
  bool is_utf8 = false;                ///< bars of blocks instead of '#'
  std::optional<std::size_t> columns;  ///< longer names are shortened
};

/// A terminal gets its width, and colour unless NO_COLOR is set.  Other outputs get plain text.
/// The options override both.
Look look_of(const Output& out, const Options& options);

}  // namespace pe::stacktop

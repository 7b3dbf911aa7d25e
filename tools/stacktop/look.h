// What the place that a table is written to can show.
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

/// Of a terminal its width, and colour unless the environment has NO_COLOR; elsewhere plain text.
/// What the options ask for comes before both.
Look look_of(const Output& out, const Options& options);

}  // namespace pe::stacktop

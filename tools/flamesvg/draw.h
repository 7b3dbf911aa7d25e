// Draws rectangles as a page, with names, tooltips and colours.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/io/output.h"
#include "flamesvg/name_attributes.h"
#include "flamesvg/painter.h"
#include "flamesvg/perl_frames.h"
#include "painting/layout.h"
#include "painting/times.h"

namespace pe::flamesvg {

/// The parts of a page.
struct Picture {
  const painting::CallTree& tree;
  const painting::Times& times;
  painting::Layout layout;
  const Options& options;
  const NameAttributes& attributes;
  const PerlFrames* perl;  ///< with --compat, else null
};

struct Drawn {
  std::uint64_t replaced;  ///< characters of names that XML cannot hold
  bool is_without_tree;    ///< the drawn frames exceed the limit of the embedded tree
};

/// Writes the page.
Drawn draw(Picture picture, Painter& painter, Output& out);

/// Writes a page that shows only `message`.
void draw_error(std::string_view message, const Options& options, Output& out);

}  // namespace pe::flamesvg

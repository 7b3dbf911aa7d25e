// From rectangles to the page: names, tooltips, colours.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "flame/layout.h"
#include "flamesvg/name_attributes.h"
#include "flamesvg/painter.h"
#include "io/output.h"

namespace pe::flamesvg {

/// What a page is made of.
struct Picture {
  const calltree::CallTree& tree;
  const flame::Layout& layout;
  const Options& options;
  const NameAttributes& attributes;
};

struct Drawn {
  std::uint64_t replaced;  ///< characters of names that XML cannot hold
  bool is_without_tree;    ///< what is drawn does not fit the limit of the embedded tree
};

/// Writes the page.
Drawn draw(const Picture& picture, Painter& painter, io::Output& out);

/// Writes a page that shows `message` alone.
void draw_error(std::string_view message, const Options& options, io::Output& out);

}  // namespace pe::flamesvg

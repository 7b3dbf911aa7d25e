// Which colour a frame gets, with everything that has a say: what it changed by,
// the colours kept from earlier pictures, the palette.
// SPDX-License-Identifier: MIT
#pragma once

#include <optional>
#include <string_view>

#include "flamesvg/options.h"
#include "flamesvg/palette_map.h"
#include "picture/tree/call_tree.h"

namespace pe::flamesvg {

class Painter {
 public:
  /// Both must outlive the painter, and so must `kept` (null: none).
  Painter(const picture::CallTree& tree, const Options& options, PaletteMap* kept)
      : tree_(tree), options_(options), kept_(kept) {}

  /// Of a frame that is drawn; its colour is kept.
  picture::Rgb paint(picture::NodeId node);

  /// What frames of this name have, unless they have a difference.
  [[nodiscard]] picture::Rgb color_of_name(std::string_view name) const;

 private:
  const picture::CallTree& tree_;
  const Options& options_;
  PaletteMap* kept_;
};

}  // namespace pe::flamesvg

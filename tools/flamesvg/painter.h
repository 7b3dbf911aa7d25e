// Chooses the colour of a frame by its change, by the colours kept from earlier
// flame graphs, or by the palette.
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
  /// `tree`, `options` and `kept` (null: none) must outlive the painter.
  Painter(const picture::CallTree& tree, const Options& options, PaletteMap* kept)
      : tree_(tree), options_(options), kept_(kept) {}

  /// Returns the colour of a frame that is drawn, and keeps it unless it shows a difference.
  picture::Rgb paint(picture::NodeId node);

  /// Returns the colour of frames of this name that have no difference.
  [[nodiscard]] picture::Rgb color_of_name(std::string_view name) const;

 private:
  const picture::CallTree& tree_;
  const Options& options_;
  PaletteMap* kept_;
};

}  // namespace pe::flamesvg

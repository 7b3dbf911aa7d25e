// Chooses the colour of a frame by its change, by the colours kept from earlier
// flame graphs, or by the palette.
// SPDX-License-Identifier: MIT
#pragma once

#include <string_view>
#include <vector>

#include "flamesvg/options.h"
#include "flamesvg/palette_map.h"
#include "flamesvg/profile.h"
#include "painting/tree/call_tree.h"

namespace pe::flamesvg {

/// Chooses the palette by the marks of the names in `tree`, if the user chose none, and adds the
/// legend of the colours that occur.
void suit_colors(const painting::CallTree& tree, Options& options);

class Painter {
 public:
  /// `profile`, `options` and `kept` (null: none) must outlive the painter.
  Painter(const Profile& profile, const Options& options, PaletteMap* kept);

  /// Returns the colour of a frame that is drawn, and keeps it unless it shows a difference.
  painting::Rgb paint(painting::NodeId node);

  /// The colours of frames that have no difference, by name_id().
  [[nodiscard]] const std::vector<painting::Rgb>& colors() const noexcept { return colors_; }

 private:
  [[nodiscard]] painting::Rgb color_of_name(std::string_view name) const;
  [[nodiscard]] std::optional<double> delta_of(painting::NodeId node) const;

  const painting::CallTree& tree_;
  const PerlFrames* perl_;  ///< with --compat, else null
  const Options& options_;
  PaletteMap* kept_;
  std::vector<painting::Rgb> colors_;
};

}  // namespace pe::flamesvg

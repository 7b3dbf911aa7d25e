// Draws rectangles as a page, with names, tooltips and colours.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/io/output.h"
#include "flamesvg/name_attributes.h"
#include "flamesvg/options.h"
#include "flamesvg/palette_map.h"
#include "flamesvg/profile.h"
#include "painting/layout.h"
#include "painting/times.h"
#include "painting/tree/call_tree.h"

namespace pe::flamesvg {

// Chooses the colour of a frame by its change, by the colours kept from earlier
// flame graphs, or by the palette.

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

// Summarizes a profile in a few sentences, for screen readers, search engines and people who
// read the file as text.

/// Returns the total count and the functions with the largest shares: by their own counts, and
/// together with their callees (a recursive function counts once).
/// `whole` is 100 %.
std::string summary_text(const painting::CallTree& tree, folded::Count whole,
                         const Options& options);

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

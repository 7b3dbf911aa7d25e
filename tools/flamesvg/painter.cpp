// SPDX-License-Identifier: MIT
#include "flamesvg/painter.h"

#include <algorithm>

namespace pe::flamesvg {

picture::Rgb Painter::color_of_name(std::string_view name) const {
  if (kept_ != nullptr)
    if (const auto color = kept_->find(name))
      return *color;
  // The root is not a function.  Where colours have meanings, it has none of these colours.
  if (name.empty() && !options_.page.legend.empty())
    return {222, 214, 196};
  if (!options_.lost.is_zero() && name == kLostName)
    return {170, 170, 170};
  return picture::frame_color(options_.palette, options_.shade, name, options_.seed);
}

picture::Rgb Painter::paint(picture::NodeId node) {
  const std::string_view name = tree_.name(node);
  const auto delta = tree_.delta(node);
  if (delta && !picture::separator_color(name)) {
    const double largest = std::max(tree_.largest_delta(), options_.is_perl ? 1.0 : 0.0);
    return picture::difference_color(options_.negate ? -*delta : *delta, largest);
  }
  const picture::Rgb color = color_of_name(name);
  if (kept_ != nullptr)
    kept_->add(name, color);
  return color;
}

}  // namespace pe::flamesvg

// What the command line means, checked.
// SPDX-License-Identifier: MIT
#pragma once

#include <boost/program_options/options_description.hpp>
#include <cstdint>
#include <optional>

#include "cli/run.h"
#include "folded/count.h"
#include "svg/colors.h"
#include "svg/page.h"

namespace pe::flamesvg {

/// Frames narrower than this are left out, and so is what is above them.
struct MinWidth {
  double value = 0.1;
  bool is_percent = false;  ///< of the total; otherwise pixels
};

struct Options {
  svg::PageStyle page;  ///< the geometry's levels are not known yet
  MinWidth min_width;
  svg::Palette palette = svg::Palette::kHot;
  svg::Shade shade = svg::Shade::kBySum;
  bool reverse = false;
  std::optional<folded::Count> total;  ///< what the whole width stands for, if not the sum
  double factor = 1;                   ///< by which shown counts are multiplied
  /// Base64 text that the embedded tree may take; 0: no tree, every frame is drawn.
  std::uint64_t embed_limit = kDefaultEmbedLimit;

  static constexpr std::uint64_t kDefaultEmbedLimit = 3 << 20;
};

void add_options(boost::program_options::options_description& options);

/// Throws UsageError.
Options read_options(const cli::CommandLine& line);

}  // namespace pe::flamesvg

// The command line of flamesvg, parsed and validated.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/cli/run.h"
#include "folded/count.h"
#include "painting/page_options.h"
#include "painting/svg/colors.h"

namespace pe::flamesvg {

/// Name of the frame of --lost.
inline constexpr std::string_view kLostName = "[lost]";

/// Order of frames from left to right.
enum class Order {
  kName,
  kWidth,  ///< the widest first
  kInput,  ///< the order of the input lines: a flame chart
};

struct Options : painting::PageOptions {
  painting::Palette palette = painting::Palette::kWarm;
  bool finds_palette = false;  ///< kKind replaces the palette if names have marks
  painting::Shade shade = painting::Shade::kBySum;
  std::uint64_t seed = 0;  ///< for Shade::kByChance
  Order order = Order::kName;
  bool is_perl = false;  ///< --compat: draw exactly as flamegraph.pl, quirks included
  bool reverse = false;
  bool folds_recursion = false;
  bool negate = false;                     ///< invert the signs of differences
  bool keeps_colors = false;               ///< --cp: keep colours in the file palette.map
  folded::Count lost;                      ///< count of a frame for lost samples; 0: no frame
  std::string name_attributes;             ///< the file of --nameattr; empty: none
  std::optional<std::uint32_t> max_depth;  ///< of a stack, without the root
  std::optional<folded::Count> total;      ///< count of the whole width, if not the sum
  double perl_total = 0;                   ///< --compat: the same; 0: the sum
  double factor = 1;                       ///< multiplies the shown counts
};

void add_options(boost::program_options::options_description& options);
/// Adds the options for users of flamegraph.pl.
void add_compatible_options(boost::program_options::options_description& options);

/// Throws UsageError.
Options read_options(const CommandLine& line);

}  // namespace pe::flamesvg

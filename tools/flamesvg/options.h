// What the command line means, checked.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/cli/run.h"
#include "folded/count.h"
#include "picture/page_options.h"
#include "picture/svg/colors.h"

namespace pe::flamesvg {

/// What the frame of --lost is called.
inline constexpr std::string_view kLostName = "[lost]";

/// From left to right.
enum class Order {
  kName,
  kWidth,  ///< the widest first
  kInput,  ///< as the lines came: a flame chart
};

struct Options : picture::PageOptions {
  picture::Palette palette = picture::Palette::kHot;
  picture::Shade shade = picture::Shade::kBySum;
  std::uint64_t seed = 0;  ///< of colours by chance
  Order order = Order::kName;
  bool is_perl = false;  ///< --compat: exactly as flamegraph.pl, quirks included
  bool reverse = false;
  bool negate = false;          ///< differences change their signs
  bool keeps_colors = false;    ///< in the file palette.map
  folded::Count lost;           ///< what a frame for lost samples counts; 0: there is none
  std::string name_attributes;  ///< the file of --nameattr; empty: none
  std::optional<std::uint32_t> max_depth;  ///< frames on each other, the root not counted
  std::optional<folded::Count> total;      ///< what the whole width stands for, if not the sum
  double factor = 1;                       ///< by which shown counts are multiplied
};

void add_options(boost::program_options::options_description& options);

/// Throws UsageError.
Options read_options(const CommandLine& line);

}  // namespace pe::flamesvg

// The command line of flamesvg, parsed and validated.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/cli/getopt_long.h"
#include "base/cli/run.h"
#include "folded/count.h"
#include "painting/layout.h"
#include "painting/numbers.h"
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

// The script that flamesvg replaces: its options, and the quirks that --compat repeats.
//
// Its frames are in perl_frames.h.  Two of its rules are in the library: folded lines
// (folded/perl_line.h), and differences of the embedded tree (painting::Differences::kPerl).

extern const std::span<const PerlName> kPerlNames;

/// Applies --compat to the options of `line`.  Throws UsageError.
void follow_perl(const CommandLine& line, Options& options);

/// Returns the name as flamegraph.pl shows it: it does not know the marks of libraries and waiting.
std::string_view perl_shown_name(std::string_view name);

// The frames that flamegraph.pl draws, for --compat.
//
// The script merges a line with the line before it.  It knows a frame by its name, its depth, and
// the sum of all counts where it ends, as printed.  If two frames share all three, which needs
// lines that count 0, only the second is drawn.  Sums are those of perl (painting/numbers.h).

class PerlFrames {
 public:
  struct Frame {
    std::uint32_t depth = 0;  ///< 0: the root
    painting::PerlNumber start, end;
    std::optional<double> delta;
    bool is_replaced = false;  ///< by a later frame that ends there
  };

  PerlFrames() { frames_.emplace_back(); }

  /// Adds the next line.
  void add(std::string_view stack, const painting::PerlCounts& counts);
  /// Ends all frames.  No line may be added afterwards.
  void finish() { close_from(0, false); }

  /// By node of the tree that NeighbourBuilder makes from the same lines.
  [[nodiscard]] const std::vector<Frame>& frames() const noexcept { return frames_; }
  [[nodiscard]] const painting::PerlNumber& total() const noexcept { return position_; }
  /// At least 1.
  [[nodiscard]] double largest_delta() const noexcept { return largest_delta_; }

 private:
  struct Open {
    std::string name;
    std::size_t frame;
  };
  void close_from(std::size_t depth, bool may_be_replaced);
  void close(const Open& open, bool may_be_replaced);
  void open(std::string_view name, std::optional<double> delta);

  std::vector<Frame> frames_;
  std::vector<Open> open_;         ///< root first
  painting::PerlNumber position_;  ///< sum of all counts so far
  /// Frames that end at position_, by name and depth, if the next line does not change it.
  std::map<std::pair<std::string, std::uint32_t>, std::size_t> closed_;
  double largest_delta_ = 1;
};

/// Returns the count that the whole width represents: --total, unless it is less than the sum.
double perl_total(const PerlFrames& frames, const Options& options);

/// Places the frames that the script draws.  With a large --total, not even the root may be wide
/// enough.
painting::Layout lay_out_as_perl(const PerlFrames& frames, const Options& options);

/// Returns the text in brackets after a frame's name: "1,234 samples, 12.34%; +1.23%".
std::string perl_detail(const PerlFrames& frames, const Options& options, painting::NodeId node);

}  // namespace pe::flamesvg

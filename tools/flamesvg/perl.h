// The script that flamesvg replaces: its options, and the quirks that --compat repeats.
//
// Its frames are in perl_frames.h.  Two of its rules are in the library: folded lines
// (folded/perl_line.h), and differences of the embedded tree (painting::Differences::kPerl).
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
#include "flamesvg/options.h"
#include "painting/layout.h"
#include "painting/perl_number.h"

namespace pe::flamesvg {

extern const std::span<const PerlName> kPerlNames;

/// Applies --compat to the options of `line`.  Throws UsageError.
void follow_perl(const CommandLine& line, Options& options);

/// Returns the name as flamegraph.pl shows it: it does not know the marks of libraries and waiting.
std::string_view perl_shown_name(std::string_view name);

// The frames that flamegraph.pl draws, for --compat.
//
// The script merges a line with the line before it.  It knows a frame by its name, its depth, and
// the sum of all counts where it ends, as printed.  If two frames share all three, which needs
// lines that count 0, only the second is drawn.  Sums are those of perl (painting/perl_number.h).

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

// SPDX-License-Identifier: MIT
#include "flamesvg/flamesvg.h"

#include "base/plural.h"
#include "flamesvg/draw.h"
#include "flamesvg/layout.h"
#include "flamesvg/options.h"
#include "flamesvg/perl_names.h"
#include "flamesvg/profile.h"

namespace pe {
namespace {

using flamesvg::Options;
using flamesvg::Profile;

void warn(cli::Io& io, const std::string& what) {
  io.err.write("flamesvg: " + what + "\n");
  io.err.flush();
}

/// Everything that was stepped over or does not add up.
void report_input(const Profile& profile, const Options& options, cli::Io& io) {
  if (profile.malformed.count > 0)
    warn(io, profile.malformed.describe());
  if (profile.tree.saturated())
    warn(io, "the counts add up to more than 64 bits hold: widths are wrong");
  if (options.total && *options.total < profile.tree.total(calltree::kRoot))
    warn(io, "--total: ignored, the counts add up to more");
}

int work(const cli::CommandLine& line, cli::Io& io) {
  const Options options = flamesvg::read_options(line);
  const Profile profile = flamesvg::read_profile(line.operands, options.reverse, io.in_fd);
  report_input(profile, options, io);
  if (profile.tree.total(calltree::kRoot).is_zero()) {
    constexpr const char* kNoStacks = "no stack with a count in the input";
    flamesvg::draw_error(kNoStacks, options, io.out);
    warn(io, kNoStacks);
    if (profile.malformed.first.find(": 'PERFILE2") !=
        std::string::npos)  // two stages were forgotten
      warn(io, "this is a sample stream: pipe it through pe-symbolize and stackfold first");
    return cli::kUsage;  // as flamegraph.pl
  }
  const flamesvg::Layout layout = flamesvg::lay_out(profile.tree, options);
  const std::uint64_t replaced = flamesvg::draw(profile.tree, layout, options, io.out);
  if (replaced > 0)
    warn(io, "replaced " + plural(replaced, "character") + " that XML cannot hold");
  return cli::kOk;
}

}  // namespace

const cli::Tool kFlamesvg{
    .name = "flamesvg",
    .synopsis = "[OPTION]... [FILE]...",
    .summary = "Draw folded stacks as an interactive SVG flame graph.",
    .add_options = flamesvg::add_options,
    .work = work,
    .perl_names = flamesvg::kPerlNames,
};

int flamesvg_main(std::span<const std::string> args, cli::Io& io) {
  return cli::run(kFlamesvg, args, io);
}

}  // namespace pe

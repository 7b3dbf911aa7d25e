// SPDX-License-Identifier: MIT
#include "flamesvg/flamesvg.h"

#include <fmt/format.h>

#include <optional>
#include <utility>

#include "base/text.h"
#include "flamesvg/draw.h"
#include "flamesvg/name_attributes.h"
#include "flamesvg/options.h"
#include "flamesvg/palette_map.h"
#include "flamesvg/profile.h"
#include "painting/layout.h"

namespace pe {
namespace {

using flamesvg::NameAttributes;
using flamesvg::Options;
using flamesvg::PaletteMap;
using flamesvg::Profile;

/// Reports all input that was skipped, and totals that look wrong.
void report_input(const Profile& profile, const Options& options, const Io& io) {
  if (profile.malformed.count > 0)
    io.note(profile.malformed.describe());
  if (profile.tree.saturated() && !profile.perl)
    io.report("the counts overflow 64 bits: widths are wrong");
  const folded::Count total = profile.tree.total(painting::kRoot);
  if ((options.total && *options.total < total) ||
      (options.perl_total > 0 && options.perl_total < total.as_double()))
    io.note("--total: ignored, because the counts add up to more");
  constexpr std::uint64_t kFewest = 100;  // as flamegraph.pl
  if (!total.is_zero() && total.whole < kFewest) {
    std::string_view unit = options.page.count_name;
    if (total == folded::Count{.whole = 1} && unit.ends_with('s') && unit != "us" && unit != "ns")
      unit.remove_suffix(1);
    io.note(fmt::format("only {:g} {}: percentages are unreliable", total.as_double(), unit));
  }
}

/// Puts the facts into the page.  The command is the title, unless the user gave one.
void show_facts(const Profile& profile, const CommandLine& line, Options& options) {
  for (const folded::Fact& fact : profile.facts) {
    options.page.facts.push_back({.name = fact.key, .value = fact.value});
    if (fact.key == "command" && !line.has("title"))
      options.page.title = fact.value;
    if (fact.key == "unit" && !line.has("countname"))
      painting::set_count_name(options.page, fact.value);
  }
}

/// Writes a page with an error message, as flamegraph.pl does.
int report_no_stacks(const Profile& profile, const Options& options, const Io& io) {
  const std::string no_stacks = "no stack with a count in the input";
  flamesvg::draw_error(no_stacks, options, io.out);
  const bool is_other_text = profile.malformed.count > 0;
  io.report(no_stacks + (is_other_text ? " (fold a profiler's text with stackfold first)" : ""));
  return kUsage;
}

NameAttributes read_attributes(const Options& options, const Io& io) {
  if (options.name_attributes.empty())
    return {};
  NameAttributes attributes = NameAttributes::read(options.name_attributes);
  if (attributes.ignored() > 0)
    io.note(fmt::format("--nameattr: ignored {}; first: {}", plural(attributes.ignored(), "field"),
                        attributes.first_ignored()));
  return attributes;
}

constexpr const char* kPaletteFile = "palette.map";  // as flamegraph.pl

std::optional<PaletteMap> read_palette_map(const Options& options, const Io& io) {
  if (!options.keeps_colors)
    return std::nullopt;
  PaletteMap map = PaletteMap::read(kPaletteFile);
  if (map.ignored_lines() > 0)
    io.note(fmt::format("{}: dropped {} without a colour \"rgb(R,G,B)\"", kPaletteFile,
                        plural(map.ignored_lines(), "line")));
  return map;
}

painting::Layout lay_out(const Profile& profile, const Options& options) {
  if (profile.perl)
    return flamesvg::lay_out_as_perl(*profile.perl, options);
  return painting::lay_out(profile.tree, {.usable_width = options.page.geometry.usable_width(),
                                          .min_width = options.min_width,
                                          .total = options.total});
}

int work(const CommandLine& line, Io& io) {
  Options options = flamesvg::read_options(line);
  const NameAttributes attributes = read_attributes(options, io);
  std::optional<PaletteMap> kept = read_palette_map(options, io);
  const Profile profile = flamesvg::read_profile(line.operands, options, io.in_fd);
  show_facts(profile, line, options);
  report_input(profile, options, io);
  if (profile.perl ? profile.perl->total().as_double() == 0
                   : profile.tree.total(painting::kRoot).is_zero())
    return report_no_stacks(profile, options, io);
  flamesvg::suit_colors(profile.tree, options);
  flamesvg::Painter painter(profile, options, kept ? &*kept : nullptr);
  const flamesvg::Drawn drawn = flamesvg::draw({.tree = profile.tree,
                                                .times = profile.times,
                                                .layout = lay_out(profile, options),
                                                .options = options,
                                                .attributes = attributes,
                                                .perl = profile.perl ? &*profile.perl : nullptr},
                                               painter, io.out);
  if (drawn.replaced > 0)
    io.note("replaced " + plural(drawn.replaced, "character") + " that XML does not allow");
  if (drawn.is_without_tree)
    io.note("--embed: too small for the frames that are drawn: the page has no tree to zoom into");
  if (kept)
    kept->write(kPaletteFile);
  return kOk;
}

}  // namespace

const Tool kFlamesvg{
    .name = "flamesvg",
    .synopsis = "[OPTION]... [FILE]...",
    .summary = "Draw folded stacks as an interactive SVG flame graph.",
    .add_options = flamesvg::add_options,
    .work = work,
    .perl_names = flamesvg::kPerlNames,
    .is_filter = true,
    .add_compatible_options = flamesvg::add_compatible_options,
    .compatible_with = "flamegraph.pl",
};

}  // namespace pe

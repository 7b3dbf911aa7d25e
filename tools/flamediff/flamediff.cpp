// SPDX-License-Identifier: MIT
#include "flamediff/flamediff.h"

#include <fmt/format.h>

#include <string>
#include <string_view>

#include "base/error.h"
#include "base/quote.h"
#include "flamediff/change_text.h"
#include "flamediff/comparison.h"
#include "flamediff/folded_output.h"
#include "flamediff/options.h"
#include "flamediff/perl.h"
#include "flamediff/picture.h"
#include "flamediff/profiles.h"
#include "flamediff/table.h"
#include "flamediff/target.h"

namespace pe {
namespace {

using flamediff::Comparison;
using flamediff::Form;
using flamediff::Options;
using flamediff::Profiles;
using flamediff::Target;

constexpr int kGrown = 3;  ///< exit status of --fail-over

void warn(Io& io, const std::string& what) {
  io.err.write(fmt::format("flamediff: {}\n", printable(what)));
  io.err.flush();
}

std::string_view empty_side(const Comparison& comparison) {
  return comparison.totals.before.is_zero() ? "before" : "after";
}

void report_input(const Profiles& profiles, const Comparison& comparison, Io& io) {
  for (const std::string& message : profiles.messages)
    warn(io, message);
  if (profiles.all.tree.saturated())
    warn(io, "the counts add up to more than 64 bits hold: shares are wrong");
  if (comparison.has_empty_side())
    warn(io, fmt::format("the profile {} is empty", empty_side(comparison)));
  else if (!comparison.knows_noise())
    warn(io, fmt::format("{}, so noise is not known: see --period, --runs",
                         flamediff::why_noise_is_unknown(comparison)));
}

/// Returns the exit status of --fail-over.
int judge_growth(const picture::CallTree& tree, const Comparison& comparison,
                 const Options& options, Io& io) {
  if (comparison.has_empty_side())
    throw Error(fmt::format("--fail-over: the profile {} is empty, so nothing can be compared",
                            empty_side(comparison)));
  if (!comparison.knows_noise())
    throw Error("--fail-over: cannot tell growth from noise; give --period or --runs");
  return flamediff::report_grown(tree, comparison, options, io.err) ? kGrown : kOk;
}

int compare_and_write(const Options& options, Io& io, Target& target) {
  const Profiles profiles = flamediff::read_profiles(options, io.in_fd);
  const Comparison comparison = flamediff::compare(profiles.all, options);
  const picture::CallTree& tree = profiles.all.tree;
  if (comparison.totals.before.is_zero() && comparison.totals.after.is_zero()) {
    for (const std::string& message : profiles.messages)
      warn(io, message);
    constexpr const char* kNoStacks = "no stack with a count in either profile";
    if (options.output == Form::kPicture)
      flamediff::draw_error(kNoStacks, options, target.open());
    warn(io, kNoStacks);
    return kUsage;
  }
  report_input(profiles, comparison, io);
  Output& out = target.open();
  if (options.output == Form::kText)
    flamediff::write_table(tree, comparison, options, out);
  else
    flamediff::draw(tree, comparison, options, io, out);
  target.finish();  // keeps the result, whether or not --fail-over fails
  return options.fail_over ? judge_growth(tree, comparison, options, io) : kOk;
}

int work(const CommandLine& line, Io& io) {
  const Options options = flamediff::read_options(line);
  Target target(options.output_file, io.out);
  int status = kOk;
  if (options.output == Form::kFolded)
    flamediff::write_folded(options, io, target);
  else
    status = compare_and_write(options, io, target);
  target.finish();
  return status;
}

}  // namespace

const Tool kFlamediff{
    .name = "flamediff",
    .synopsis = "[OPTION]... BEFORE [AFTER]",
    .summary = "Show what two profiles differ by, and what of it is more than noise.",
    .add_options = flamediff::add_options,
    .work = work,
    .has_two_sides = true,
    .perl_names = flamediff::kPerlNames,
};

}  // namespace pe

// SPDX-License-Identifier: MIT
#include "flamediff/flamediff.h"

#include <fmt/format.h>

#include <string>
#include <utility>

#include "base/io/input.h"
#include "flamediff/comparison.h"
#include "flamediff/folded_output.h"
#include "flamediff/options.h"
#include "flamediff/picture.h"
#include "flamediff/profiles.h"
#include "flamediff/table.h"

namespace pe {
namespace {

using flamediff::Comparison;
using flamediff::Form;
using flamediff::Options;
using flamediff::Profiles;

constexpr int kGrown = 3;  ///< exit status of --fail-over

/// Returns why changes cannot be judged; empty if they can.
std::string doubt_text(const Comparison& comparison, const Options& options) {
  if (comparison.has_empty_side()) {
    const bool is_before = comparison.totals.before.is_zero();
    std::string names;
    for (const std::string& file : is_before ? options.before : options.after)
      names += (names.empty() ? "" : ", ") + input_name(file);
    return fmt::format("{}: the profile {} is empty", names, is_before ? "before" : "after");
  }
  if (comparison.knows_noise())
    return {};
  return fmt::format("{}, so the noise is unknown (see flamediff --period, --runs)",
                     flamediff::why_noise_is_unknown(comparison));
}

void report_input(const Profiles& profiles, const std::string& doubt, const Io& io) {
  for (const std::string& message : profiles.messages)
    io.note(message);
  if (!profiles.meaning.empty())
    io.note(profiles.meaning);
  if (profiles.all.tree.saturated())
    io.report("the counts overflow 64 bits: shares are wrong");
  if (!doubt.empty())
    io.note(doubt);
}

int compare_and_write(Options options, Io& io) {
  const Profiles profiles = flamediff::read_profiles(options, io.in_fd);
  if (!profiles.unit.empty() && profiles.unit != "samples") {
    painting::set_count_name(options.page, profiles.unit);
    options.has_unit = true;
  }
  const Comparison comparison = flamediff::compare(profiles.all, options);
  const painting::CallTree& tree = profiles.all.tree;
  if (comparison.totals.before.is_zero() && comparison.totals.after.is_zero()) {
    for (const std::string& message : profiles.messages)
      io.note(message);
    constexpr const char* kNoStacks = "no stack with a count in either profile";
    if (options.output == Form::kPicture)
      flamediff::draw_error(kNoStacks, options, io.out);
    io.report(kNoStacks);
    return kUsage;
  }
  if (!profiles.meaning.empty() && options.page.subtitle.empty())
    options.page.subtitle = profiles.meaning;
  const std::string doubt = doubt_text(comparison, options);
  report_input(profiles, options.fail_over ? "" : doubt, io);
  if (options.output == Form::kText && options.table == flamediff::TableForm::kText)
    flamediff::write_table(tree, comparison, options, io.out);
  else if (options.output == Form::kText)
    flamediff::write_data(tree, comparison, options, io.out);
  else
    flamediff::draw(tree, comparison, options, io);
  if (!options.fail_over)
    return kOk;
  io.out.flush();  // the result precedes the verdict
  if (doubt.empty())
    return flamediff::report_grown(tree, comparison, options, io) ? kGrown : kOk;
  io.report("--fail-over: " + doubt);
  return kFailure;
}

int work(const CommandLine& line, Io& io) {
  Options options = flamediff::read_options(line);
  if (options.output != Form::kFolded)
    return compare_and_write(std::move(options), io);
  flamediff::write_folded(options, io);
  return kOk;
}

}  // namespace

const Tool kFlamediff{
    .name = "flamediff",
    .synopsis = "[OPTION]... BEFORE [AFTER]",
    .summary = "Show how two profiles differ, and which differences exceed noise.",
    .add_options = flamediff::add_options,
    .work = work,
    .has_two_sides = true,
    .perl_names = flamediff::kPerlNames,
    .is_filter = true,
    .add_compatible_options = flamediff::add_compatible_options,
    .compatible_with = "difffolded.pl and flamegraph.pl",
};

}  // namespace pe

// SPDX-License-Identifier: MIT
#include "flamediff/growth.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "flamediff/change_text.h"
#include "flamediff/verdict.h"
#include "painting/numbers.h"

namespace pe::flamediff {
namespace {

using painting::Noise;

/// A function, or everything, that grew by more than the limit.
struct Growth {
  std::string_view name;
  Sides sides;
  painting::Change change;
};

/// Returns what grew by more than the limit, most first.
std::vector<Growth> growth_of(const painting::CallTree& tree, const Comparison& comparison) {
  std::vector<Growth> all;
  if (comparison.has_cost_over_limit)
    all.push_back({"everything", comparison.totals, comparison.cost});
  for (std::uint32_t name = 0; name < tree.name_count(); ++name)
    if (comparison.is_over_limit[name] &&
        comparison.functions.changes[name].noise != Noise::kTooRare)
      all.push_back({tree.name_text(name), comparison.functions.sides[name],
                     comparison.functions.changes[name]});
  std::ranges::stable_sort(all, [&](const Growth& a, const Growth& b) {
    return comparison.wholes.change(a.sides) > comparison.wholes.change(b.sides);
  });
  return all;
}

std::string_view whole_of(const Options& options) {
  if (!options.work.empty())
    return " of the earlier cost per unit of work";
  return options.is_absolute ? " of the earlier count" : "";
}

std::string text_of(const Growth& growth, const Comparison& comparison, const Options& options) {
  return fmt::format("{} grew from {} to {}{}", growth.name,
                     percent(comparison.wholes.share_before(growth.sides)),
                     percent(comparison.wholes.share_after(growth.sides)), whole_of(options));
}

/// Reports the growth that is not beyond noise, and how to measure it better.
std::string unsure_text(const std::vector<Growth>& unsure, const Comparison& comparison,
                        const Options& options) {
  const std::string who = text_of(unsure.front(), comparison, options);
  const std::string whoever = unsure.size() == 1
                                  ? who
                                  : fmt::format("{} functions grew by more than {}%; the most: {}",
                                                unsure.size(), *options.fail_over, who);
  if (comparison.has_runs)
    return fmt::format(
        "{}, but there are too few runs to tell this from noise: record more, or longer ones",
        whoever);
  const auto samples = [&](Count count) {
    return painting::grouped_count(
        {.whole = count.whole / comparison.counts_per_sample, .billionths = 0}, 1);
  };
  return fmt::format(
      "{}, but there are too few samples to tell this from noise ({} and {}): record longer, or "
      "compare several runs (stackpipe runs ci --runs N)",
      whoever, samples(comparison.totals.before), samples(comparison.totals.after));
}

}  // namespace

bool report_grown(const painting::CallTree& tree, const Comparison& comparison,
                  const Options& options, const Io& io) {
  std::vector<Growth> unsure;
  bool is_any = false;
  for (const Growth& growth : growth_of(tree, comparison)) {
    if (growth.change.noise != Noise::kBeyond) {
      unsure.push_back(growth);
      continue;
    }
    is_any = true;
    io.report(fmt::format("--fail-over: {} ({}, {})", text_of(growth, comparison, options),
                          signed_percent(comparison.wholes.change(growth.sides)),
                          interval_text(growth.change.noise, growth.change.interval)));
  }
  if (!is_any && !unsure.empty())
    io.report(unsure_text(unsure, comparison, options));
  return is_any;
}

}  // namespace pe::flamediff

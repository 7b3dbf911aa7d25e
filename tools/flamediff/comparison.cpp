// SPDX-License-Identifier: MIT
#include "flamediff/comparison.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <optional>
#include <span>
#include <utility>

namespace pe::flamediff {
namespace {

using painting::kRoot;
using painting::NodeId;
using painting::ProfileUnion;

/// A column for each run: its counts, by node or by function.
using CountColumns = std::vector<std::span<const Count>>;

/// Properties of own counts, to infer their unit.
struct Unit {
  std::uint64_t divisor = 0;  ///< the greatest common one
  double total = 0;
  std::uint64_t stacks = 0, small = 0;
  bool has_fractions = false;
};

Unit unit_of(const ProfileUnion& all) {
  Unit unit;
  for (const auto& profile : all.profiles) {
    for (const Count count : profile.self) {
      if (count.is_zero())
        continue;
      ++unit.stacks;
      unit.has_fractions = unit.has_fractions || count.billionths != 0;
      unit.total += count.as_double();
      if (unit.divisor != 1)
        unit.divisor = std::gcd(unit.divisor, count.whole);
    }
  }
  constexpr std::uint64_t kSmall = 10;  // samples
  for (const auto& profile : all.profiles)
    for (const Count count : profile.self)
      unit.small +=
          !count.is_zero() && count.whole / std::max<std::uint64_t>(1, unit.divisor) < kSmall;
  return unit;
}

/// Returns how many counts a sample has; 0 if counts are not samples, or if that is not known.
///
/// These are heuristics.  A common divisor of many counts is a sampling period; one of a few
/// counts may be chance, unless it is large.  Microseconds and bytes have no common divisor, their
/// sum is large, and hardly any stack has less than ten of them.  Samples have a long tail of
/// stacks seen once or twice.  A total of at most kSurelySamples microseconds is mistaken for
/// samples; --countname and --period prevent that.
std::uint64_t counts_per_sample(const ProfileUnion& all, const Options& options) {
  constexpr std::uint64_t kManyStacks = 16;
  constexpr std::uint64_t kLargePeriod = 10'000;
  constexpr double kSurelySamples = 100'000;
  constexpr std::uint64_t kOneSmallIn = 20;
  if (options.period)
    return *options.period;
  const Unit unit = unit_of(all);
  if (options.has_unit || unit.has_fractions)
    return 0;
  const bool is_period = unit.stacks >= kManyStacks || unit.divisor >= kLargePeriod;
  const std::uint64_t period = is_period ? std::max<std::uint64_t>(1, unit.divisor) : 1;
  const bool is_plausible = unit.total / static_cast<double>(period) <= kSurelySamples ||
                            unit.small * kOneSmallIn >= unit.stacks;
  return is_plausible ? period : 0;
}

std::vector<Sides> sides_of(const CountColumns& columns, std::size_t runs_before) {
  std::vector<Sides> sides(columns.front().size());
  for (std::size_t run = 0; run < columns.size(); ++run)
    for (std::size_t i = 0; i < sides.size(); ++i)
      static_cast<void>(
          (run < runs_before ? sides[i].before : sides[i].after).add(columns[run][i]));
  return sides;
}

/// Returns the units of work of each run, 1 for each without --per.
std::vector<double> work_of(const Options& options) {
  return options.work.empty() ? std::vector<double>(options.before.size() + options.after.size(), 1)
                              : options.work;
}

double work_before(const Options& options) {
  const std::vector<double> work = work_of(options);
  return std::accumulate(work.begin(), work.begin() + std::ssize(options.before), 0.0);
}

class Judging {
 public:
  Judging(const ProfileUnion& all, const Comparison& comparison, const Options& options)
      : all_(all), runs_before_(options.before.size()) {
    experiment_.counts_per_sample = static_cast<double>(comparison.counts_per_sample);
    if (options.is_absolute)
      experiment_.work = work_of(options);
    // Converts intervals of counts per unit to shares of the first side's counts per unit.
    if (options.is_absolute && comparison.wholes.before > 0)
      scale_ = work_before(options) / comparison.wholes.before;
    for (std::size_t run = 0; run < all.profiles.size(); ++run)
      (run < runs_before_ ? experiment_.before : experiment_.after)
          .push_back(all.profiles[run].total[kRoot].as_double());
    if (options.is_absolute && comparison.counts_per_sample > 0)
      scale_ *= static_cast<double>(comparison.counts_per_sample);
  }

  /// `same_as(i)`: a lower index whose counts are the same because they come from the same
  /// samples, or `i` if there is none.
  template <typename SameAs>
  [[nodiscard]] Compared judge(const CountColumns& columns, SameAs same_as,
                               std::optional<double> least_growth = {}) const {
    painting::Experiment experiment = experiment_;
    if (least_growth)
      experiment.least_growth = *least_growth / scale_;
    painting::NoiseJudge judge(std::move(experiment));
    std::vector<double> counts(columns.size());
    Compared compared{.sides = sides_of(columns, runs_before_), .changes = {}};
    for (std::size_t i = 0; i < compared.sides.size(); ++i) {
      if (const std::size_t same = same_as(i); same != i) {
        judge.add_same_as(same);
        continue;
      }
      for (std::size_t run = 0; run < columns.size(); ++run)
        counts[run] = columns[run][i].as_double();
      judge.add(counts);
    }
    compared.changes = judge.judge();
    for (painting::Change& change : compared.changes)
      change.interval = {change.interval.low * scale_, change.interval.high * scale_};
    return compared;
  }

  [[nodiscard]] Compared judge_nodes() const {
    CountColumns totals;
    for (const auto& profile : all_.profiles)
      totals.emplace_back(profile.total);
    const painting::CallTree& tree = all_.tree;
    return judge(totals, [&](std::size_t i) -> std::size_t {
      const NodeId above = tree.parent(static_cast<NodeId>(i));
      const bool is_same = std::ranges::all_of(
          totals, [&](const auto& column) { return column[i] == column[above]; });
      return is_same ? above : i;
    });
  }

 private:
  const ProfileUnion& all_;
  std::size_t runs_before_;
  double scale_ = 1;
  painting::Experiment experiment_;
};

/// Returns for each name whether a frame that is not a root, or has own stacks, has it.  Others are
/// names of programs and threads, not functions.
std::vector<bool> functions_of(const ProfileUnion& all) {
  std::vector<bool> is_function(all.tree.name_count());
  for (NodeId node = kRoot + 1; node < all.tree.size(); ++node)
    if (all.tree.parent(node) != kRoot || std::ranges::any_of(all.profiles, [node](const auto& p) {
          return !p.self[node].is_zero();
        }))
      is_function[all.tree.name_id(node)] = true;
  return is_function;
}

/// Judges once what grew by more than `limit`, a share of the first side: the status, the messages
/// and the tables follow this.  The cost of everything is judged with the functions.
void judge_growth(const ProfileUnion& all, const Judging& judging, const CountColumns& of_functions,
                  double limit, Comparison& comparison) {
  const std::vector<bool> is_function = functions_of(all);
  std::vector<std::vector<Count>> columns;  // of functions, then of everything; no others
  for (std::size_t run = 0; run < of_functions.size(); ++run) {
    columns.emplace_back(of_functions[run].begin(), of_functions[run].end());
    for (std::size_t name = 0; name < is_function.size(); ++name)
      if (!is_function[name])
        columns.back()[name] = {};
    columns.back().push_back(all.profiles[run].total[kRoot]);
  }
  const std::size_t everything = is_function.size();
  const Compared grown = judging.judge(
      CountColumns(columns.begin(), columns.end()), [](std::size_t i) { return i; }, limit);
  comparison.is_over_limit.resize(everything);
  for (std::size_t name = 0; name < everything; ++name) {
    if (comparison.wholes.change(comparison.functions.sides[name]) <= limit)
      continue;
    comparison.is_over_limit[name] = true;
    comparison.functions.changes[name] = grown.changes[name];
  }
  if (comparison.wholes.change(comparison.totals) <= limit)
    return;
  comparison.has_cost_over_limit = true;
  comparison.cost = grown.changes[everything];
}

Wholes wholes_of(const Sides& totals, const Options& options) {
  Wholes wholes{.before = totals.before.as_double(), .after = totals.after.as_double()};
  if (!options.is_absolute)
    return wholes;
  const std::vector<double> work = work_of(options);
  const double before = work_before(options);
  const double times = (std::accumulate(work.begin(), work.end(), 0.0) - before) / before;
  if (wholes.before > 0)
    wholes.after = wholes.before * times;
  else
    wholes.before = wholes.after / times;
  return wholes;
}

}  // namespace

Comparison compare(const ProfileUnion& all, const Options& options) {
  const std::size_t runs_before = options.before.size();
  Comparison comparison;
  CountColumns self;
  for (const auto& profile : all.profiles)
    self.emplace_back(profile.self);
  comparison.self_of_nodes.sides = sides_of(self, runs_before);
  comparison.has_runs = std::ranges::count_if(all.profiles, [](const auto& profile) {
                          return !profile.total[kRoot].is_zero();
                        }) > 2;
  comparison.counts_per_sample = counts_per_sample(all, options);
  CountColumns totals;
  for (const auto& profile : all.profiles)
    totals.push_back(std::span(profile.total).first(1));
  comparison.totals = sides_of(totals, runs_before).front();
  comparison.wholes = wholes_of(comparison.totals, options);

  const Judging judging(all, comparison, options);
  const auto itself = [](std::size_t i) { return i; };
  if (options.is_absolute)
    comparison.cost = judging.judge(totals, itself).changes.front();
  if (options.output == Form::kPicture)
    comparison.nodes = judging.judge_nodes();
  if (options.output == Form::kPicture && !options.fail_over)
    return comparison;
  std::vector<painting::FunctionCounts> functions;
  functions.reserve(all.profiles.size());
  for (const auto& profile : all.profiles)
    functions.push_back(painting::function_counts(all.tree, profile.self, profile.total));
  CountColumns of_functions;
  CountColumns self_of_functions;
  for (const auto& counts : functions) {
    of_functions.emplace_back(counts.total);
    self_of_functions.emplace_back(counts.self);
  }
  comparison.functions = judging.judge(of_functions, itself);
  comparison.self_of_functions = judging.judge(self_of_functions, itself);
  if (options.fail_over)
    judge_growth(all, judging, of_functions, *options.fail_over / 100, comparison);
  return comparison;
}

std::string percent(double share) { return fmt::format("{:.2f}%", 100 * share); }

std::string signed_percent(double share) {
  const std::string text = percent(share);
  if (text == "-0.00%")
    return "0.00%";
  return share > 0 && text != "0.00%" ? "+" + text : text;
}

std::string_view why_noise_is_unknown(const Comparison& comparison) {
  return comparison.has_empty_side() ? "one profile is empty"
                                     : "the counts do not look like samples";
}

}  // namespace pe::flamediff

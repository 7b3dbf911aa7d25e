// SPDX-License-Identifier: MIT
#include "flamediff/table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <string>
#include <string_view>
#include <vector>

#include "base/text.h"
#include "flamediff/comparison.h"
#include "painting/numbers.h"

namespace pe::flamediff {

using painting::Noise;

Verdict Verdicts::of(std::uint32_t name) const {
  const Sides& total = comparison_.functions.sides[name];
  const painting::Change& change = comparison_.functions.changes[name];
  const Verdict verdict{.noise = change.noise,
                        .change = comparison_.wholes.change(total),
                        .interval = change.interval};
  const painting::Change& of_self = comparison_.self_of_functions.changes[name];
  const bool is_over_limit = !comparison_.is_over_limit.empty() && comparison_.is_over_limit[name];
  if (verdict.noise == Noise::kBeyond || of_self.noise != Noise::kBeyond || is_over_limit)
    return verdict;
  return {.noise = Noise::kBeyond,
          .is_of_self = true,
          .change = comparison_.wholes.change(comparison_.self_of_functions.sides[name]),
          .interval = of_self.interval};
}

/// compare() does not judge the growth of a program's name.
bool Verdicts::is_growth_of_a_program(std::uint32_t name) const {
  return !comparison_.is_over_limit.empty() && comparison_.is_over_limit[name] &&
         comparison_.functions.changes[name].noise == Noise::kTooRare;
}

std::vector<std::uint32_t> Verdicts::changed() const {
  struct Row {
    std::uint32_t name;
    bool is_beyond;
    double size;
  };
  std::vector<Row> rows;
  for (std::uint32_t name = 0; name < tree_.name_count(); ++name) {
    const Verdict verdict = of(name);
    if (verdict.change != 0 && !is_growth_of_a_program(name))
      rows.push_back({name, verdict.noise == Noise::kBeyond, std::abs(verdict.change)});
  }
  std::ranges::sort(rows, [this](const Row& a, const Row& b) {
    if (a.is_beyond != b.is_beyond)
      return a.is_beyond;
    if (a.size != b.size)
      return a.size > b.size;
    return tree_.name_text(a.name) < tree_.name_text(b.name);
  });
  std::vector<std::uint32_t> names;
  names.reserve(rows.size());
  for (const Row& row : rows)
    names.push_back(row.name);
  return names;
}

std::string interval_text(Noise noise, const painting::Interval& interval) {
  if (noise == Noise::kUnknown)
    return "-";
  return fmt::format("{} .. {}", signed_percent(interval.low), signed_percent(interval.high));
}

std::string_view word_for(Noise noise) {
  switch (noise) {
    case Noise::kUnknown:
      return "?";
    case Noise::kTooRare:
      return "rare";
    case Noise::kWithin:
      return "noise";
    case Noise::kBeyond:
      break;
  }
  return "sure";
}

namespace {

constexpr std::string_view kRow = "{:>8} {:>8} {:>8}  {:>21} {:<5} {:>8} {:>8} {:>8}  {}\n";

/// A share does not measure cost, because it shrinks when others grow.
struct Words {
  std::string_view percentages, changes, cost;
};

Words words_for(const Options& options) {
  if (!options.work.empty())
    return {.percentages = "percentages of the earlier cost per unit of work",
            .changes = "changes in the cost per unit of work",
            .cost = "cost per unit of work"};
  if (options.is_absolute)
    return {.percentages = "percentages of the earlier count",
            .changes = "changes in the count",
            .cost = "count per run"};
  return {.percentages = "percentages of each profile", .changes = "changes in shares", .cost = ""};
}

/// Formats the cost of a unit of work, or of a run, on both sides.
std::string cost_text(const Comparison& comparison, const Options& options) {
  if (!options.is_absolute || comparison.has_empty_side())
    return {};
  double before = static_cast<double>(options.before.size());
  double after = static_cast<double>(options.after.size());
  if (!options.work.empty()) {
    const auto middle = options.work.begin() + std::ssize(options.before);
    before = std::accumulate(options.work.begin(), middle, 0.0);
    after = std::accumulate(middle, options.work.end(), 0.0);
  }
  const Sides& totals = comparison.totals;
  return fmt::format("{}: before {:.4g} {}, after {:.4g}: {} ({}), {}\n", words_for(options).cost,
                     totals.before.as_double() / before, options.page.count_name,
                     totals.after.as_double() / after,
                     signed_percent(comparison.wholes.change(totals)),
                     interval_text(comparison.cost.noise, comparison.cost.interval),
                     word_for(comparison.cost.noise));
}

std::string noise_text(const Comparison& comparison) {
  if (!comparison.knows_noise())
    return fmt::format("noise: unknown, because {}{}", why_noise_is_unknown(comparison),
                       comparison.has_empty_side() ? "" : " (flamediff --period, --runs)");
  const std::string samples =
      comparison.counts_per_sample > 1
          ? fmt::format(" (a sample counts {})", comparison.counts_per_sample)
          : "";
  if (comparison.has_runs)
    return "noise: from sampling, and from differences between runs" + samples;
  return "noise: from sampling alone; runs may differ by more (flamediff --runs)" + samples;
}

std::string row_text(const painting::CallTree& tree, const Comparison& comparison,
                     std::uint32_t name, const Verdict& verdict) {
  const Wholes& wholes = comparison.wholes;
  const Sides& total = comparison.functions.sides[name];
  const Sides& self = comparison.self_of_functions.sides[name];
  return fmt::format(kRow, percent(wholes.share_before(total)), percent(wholes.share_after(total)),
                     signed_percent(wholes.change(total)),
                     interval_text(verdict.noise, verdict.interval),
                     verdict.is_of_self ? "self" : word_for(verdict.noise),
                     percent(wholes.share_before(self)), percent(wholes.share_after(self)),
                     signed_percent(wholes.change(self)), printable(tree.name_text(name)));
}

bool shows_all(const Comparison& comparison, const Options& options) {
  return options.shows_noise || (!comparison.knows_noise() && !options.is_only_significant);
}

}  // namespace

Rows rows_of(const painting::CallTree& tree, const Comparison& comparison, const Options& options) {
  const Verdicts verdicts(tree, comparison);
  const bool has_all = shows_all(comparison, options);
  Rows rows;
  for (const std::uint32_t name : verdicts.changed()) {
    const Verdict verdict = verdicts.of(name);
    if (!has_all && verdict.noise != Noise::kBeyond) {
      ++rows.left_out;
      if (std::abs(verdict.change) > std::abs(rows.most))
        rows.most = verdict.change;
    } else if (options.top > 0 && rows.shown.size() == options.top) {
      ++rows.more;
    } else {
      rows.shown.push_back({.name = name, .verdict = verdict});
    }
  }
  return rows;
}

namespace {

void write_rows(const painting::CallTree& tree, const Comparison& comparison,
                const Options& options, Output& out) {
  const bool has_all = shows_all(comparison, options);
  const Rows rows = rows_of(tree, comparison, options);
  if (has_all)
    out.write(
        "sure: more than noise; noise: may be noise; rare: too few samples to tell; ?: unknown\n");
  if (std::ranges::any_of(rows.shown, [](const Row& row) { return row.verdict.is_of_self; }))
    out.write("self: the function itself, without its callees, changed by more than noise\n");
  out.write(fmt::format("\n{}{}, largest first\n", words_for(options).changes,
                        has_all ? "" : " beyond noise"));
  if (!rows.shown.empty())
    out.write(fmt::format(kRow, "BEFORE", "AFTER", "CHANGE", "INTERVAL", "", "SELF-B", "SELF-A",
                          "CHANGE", "FUNCTION"));
  else
    out.write("  none\n");
  for (const Row& row : rows.shown)
    out.write(row_text(tree, comparison, row.name, row.verdict));
  if (rows.more > 0)
    out.write(fmt::format("  and {} more (--top)\n", rows.more));
  if (rows.left_out > 0)
    out.write(fmt::format("{} with changes that may be noise, at most {} (--with-noise)\n",
                          plural(rows.left_out, "other function"), signed_percent(rows.most)));
}

}  // namespace

void write_table(const painting::CallTree& tree, const Comparison& comparison,
                 const Options& options, Output& out) {
  const std::string& unit = options.page.count_name;
  out.write(fmt::format("before: {} {}; after: {} {}; {}\n{}{}\n",
                        painting::grouped_count(comparison.totals.before, 1), unit,
                        painting::grouped_count(comparison.totals.after, 1), unit,
                        words_for(options).percentages, cost_text(comparison, options),
                        noise_text(comparison)));
  write_rows(tree, comparison, options, out);
}

namespace {

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

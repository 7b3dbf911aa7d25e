// SPDX-License-Identifier: MIT
#include "flamediff/table.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <string_view>
#include <vector>

#include "base/quote.h"
#include "flamediff/change_text.h"
#include "picture/numbers.h"

namespace pe::flamediff {
namespace {

using picture::Noise;

constexpr std::string_view kRow = "{:>8} {:>8} {:>8}  {:>21} {:<5} {:>8} {:>8} {:>8} {:<5}  {}\n";

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

std::string interval_text(const picture::Change& change) {
  if (change.noise == Noise::kUnknown)
    return "-";
  return fmt::format("{} .. {}", signed_percent(change.interval.low),
                     signed_percent(change.interval.high));
}

/// Sorts functions that changed in one direction: those beyond noise first, larger changes first.
class Order {
 public:
  Order(const picture::CallTree& tree, const Comparison& comparison)
      : tree_(tree), comparison_(comparison) {}

  [[nodiscard]] std::vector<std::uint32_t> of(bool is_more, bool only_significant) const {
    std::vector<std::uint32_t> names;
    for (std::uint32_t name = 0; name < tree_.name_count(); ++name) {
      const double change = comparison_.wholes.change(comparison_.functions.sides[name]);
      if ((is_more ? change > 0 : change < 0) && (is_beyond(name) || !only_significant))
        names.push_back(name);  // NOLINT(performance-inefficient-vector-operation): some of all
    }
    std::ranges::sort(names, [this](std::uint32_t a, std::uint32_t b) { return is_before(a, b); });
    return names;
  }

 private:
  [[nodiscard]] bool is_beyond(std::uint32_t name) const {
    return comparison_.functions.changes[name].noise == Noise::kBeyond ||
           comparison_.self_of_functions.changes[name].noise == Noise::kBeyond;
  }
  [[nodiscard]] double size(std::uint32_t name) const {
    return std::abs(comparison_.wholes.change(comparison_.functions.sides[name]));
  }
  [[nodiscard]] bool is_before(std::uint32_t a, std::uint32_t b) const {
    if (is_beyond(a) != is_beyond(b))
      return is_beyond(a);
    if (size(a) != size(b))
      return size(a) > size(b);
    return tree_.name_text(a) < tree_.name_text(b);
  }

  const picture::CallTree& tree_;
  const Comparison& comparison_;
};

struct Table {
  const picture::CallTree& tree;
  const Comparison& comparison;
  std::uint64_t top;  ///< rows; 0: all
};

std::string row_text(const Table& table, std::uint32_t name) {
  const Wholes& wholes = table.comparison.wholes;
  const Sides& total = table.comparison.functions.sides[name];
  const Sides& self = table.comparison.self_of_functions.sides[name];
  const picture::Change& change = table.comparison.functions.changes[name];
  const bool has_self = !self.before.is_zero() || !self.after.is_zero();
  const std::string_view self_word =
      has_self ? word_for(table.comparison.self_of_functions.changes[name].noise) : "";
  return fmt::format(kRow, percent(wholes.share_before(total)), percent(wholes.share_after(total)),
                     signed_percent(wholes.change(total)), interval_text(change),
                     word_for(change.noise), percent(wholes.share_before(self)),
                     percent(wholes.share_after(self)), signed_percent(wholes.change(self)),
                     self_word, printable(table.tree.name_text(name)));
}

void write_rows(std::string_view title, const std::vector<std::uint32_t>& names, const Table& table,
                Output& out) {
  out.write(fmt::format("\n{}\n", title));
  if (names.empty()) {
    out.write("  none\n");
    return;
  }
  out.write(fmt::format(kRow, "BEFORE", "AFTER", "CHANGE", "INTERVAL", "", "SELF-B", "SELF-A",
                        "CHANGE", "", "FUNCTION"));
  std::uint64_t row = 0;
  for (const std::uint32_t name : names) {
    if (table.top > 0 && row++ == table.top) {
      out.write(fmt::format("  and {} more (--top)\n", names.size() - table.top));
      return;
    }
    out.write(row_text(table, name));
  }
}

/// A share does not measure cost, because it shrinks when others grow.  Only cost per unit of work
/// can get worse.
struct Words {
  std::string_view percentages, more, less;
};

Words words_for(const Options& options) {
  if (!options.work.empty())
    return {.percentages = "percentages of the cost of a unit of work before",
            .more = "worse: a unit of work costs more",
            .less = "better: a unit of work costs less"};
  if (options.is_absolute)
    return {.percentages = "percentages of what was counted before",
            .more = "larger count",
            .less = "smaller count"};
  return {.percentages = "percentages of each", .more = "larger share", .less = "smaller share"};
}

/// Formats the cost of a unit of work on both sides.
std::string cost_text(const Comparison& comparison, const Options& options) {
  const auto middle = options.work.begin() + std::ssize(options.before);
  const double before = std::accumulate(options.work.begin(), middle, 0.0);
  const double after = std::accumulate(middle, options.work.end(), 0.0);
  const Sides& totals = comparison.totals;
  return fmt::format("cost of a unit of work: before {:.4g} {}, after {:.4g}: {} ({}), {}\n",
                     totals.before.as_double() / before, options.page.count_name,
                     totals.after.as_double() / after,
                     signed_percent(comparison.wholes.change(totals)),
                     interval_text(comparison.cost), word_for(comparison.cost.noise));
}

std::string noise_text(const Comparison& comparison) {
  if (!comparison.knows_noise())
    return fmt::format("noise: not known, for {}{}", why_noise_is_unknown(comparison),
                       comparison.has_empty_side() ? "" : " (flamediff --period, --runs)");
  const std::string samples =
      comparison.counts_per_sample > 1
          ? fmt::format(" (a sample is {} counts)", comparison.counts_per_sample)
          : "";
  if (comparison.has_runs)
    return "noise: of drawing samples, and what runs differ by" + samples;
  return "noise: of drawing samples alone; runs may differ by more (flamediff --runs)" + samples;
}

/// Functions that grew by more than the limit, but not beyond noise.
struct Unsure {
  std::uint64_t count = 0;
  std::uint32_t most = 0;  ///< name_id() of the function that grew most
  double change = 0;       ///< of that function

  void add(std::uint32_t name, double by) {
    ++count;
    if (by > change) {
      most = name;
      change = by;
    }
  }
};

std::string growth_text(const picture::CallTree& tree, const Comparison& comparison,
                        std::uint32_t name) {
  const Sides& sides = comparison.functions.sides[name];
  return fmt::format("{} grew from {} to {}", tree.name_text(name),
                     percent(comparison.wholes.share_before(sides)),
                     percent(comparison.wholes.share_after(sides)));
}

/// Reports the growth that is not beyond noise, and how to measure it better.
std::string unsure_text(const picture::CallTree& tree, const Comparison& comparison,
                        const Options& options, const Unsure& unsure) {
  const std::string who = growth_text(tree, comparison, unsure.most);
  const std::string whoever =
      unsure.count == 1 ? who
                        : fmt::format("{} functions grew by more than {}%, most of all {}",
                                      unsure.count, *options.fail_over, who);
  if (comparison.has_runs)
    return fmt::format(
        "{}, which so few runs cannot tell from noise: make more of them, or longer ones", whoever);
  const auto samples = [&](Count count) {
    return picture::grouped_count(
        {.whole = count.whole / comparison.counts_per_sample, .billionths = 0}, 1);
  };
  return fmt::format(
      "{}, which so few samples cannot tell from noise ({} and {}): record longer, or compare "
      "several runs (stackpipe runs ci --runs N)",
      whoever, samples(comparison.totals.before), samples(comparison.totals.after));
}

}  // namespace

void write_table(const picture::CallTree& tree, const Comparison& comparison,
                 const Options& options, Output& out) {
  const std::string& unit = options.page.count_name;
  out.write(fmt::format(
      "before: {} {}; after: {} {}; {}\n{}{}\n",
      picture::grouped_count(comparison.totals.before, 1), unit,
      picture::grouped_count(comparison.totals.after, 1), unit, words_for(options).percentages,
      options.work.empty() ? "" : cost_text(comparison, options), noise_text(comparison)));
  out.write(
      "sure: more than noise; noise: perhaps nothing; rare: too rare to tell; ?: not known\n");
  const Order order(tree, comparison);
  const Table table{.tree = tree, .comparison = comparison, .top = options.top};
  const Words words = words_for(options);
  write_rows(words.more, order.of(true, options.is_only_significant), table, out);
  write_rows(words.less, order.of(false, options.is_only_significant), table, out);
}

bool report_grown(const picture::CallTree& tree, const Comparison& comparison,
                  const Options& options, const Io& io) {
  const double limit = *options.fail_over / 100;
  std::uint64_t grown = 0;
  Unsure unsure;
  for (const std::uint32_t name : Order(tree, comparison).of(true, false)) {
    const double change = comparison.wholes.change(comparison.functions.sides[name]);
    if (change <= limit)
      continue;
    if (comparison.grown_functions.changes[name].noise != Noise::kBeyond) {
      unsure.add(name, change);
      continue;
    }
    io.report(fmt::format("--fail-over: {} ({}, {})", growth_text(tree, comparison, name),
                          signed_percent(change),
                          interval_text(comparison.grown_functions.changes[name])));
    ++grown;
  }
  if (grown == 0 && unsure.count > 0)
    io.report(unsure_text(tree, comparison, options, unsure));
  return grown > 0;
}

}  // namespace pe::flamediff

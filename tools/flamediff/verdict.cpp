// SPDX-License-Identifier: MIT
#include "flamediff/verdict.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "flamediff/change_text.h"

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

}  // namespace pe::flamediff

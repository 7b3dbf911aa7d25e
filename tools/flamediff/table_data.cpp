// Writes the table of changes for other programs, and for tickets.
// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include <string>
#include <string_view>

#include "base/io/json_writer.h"
#include "base/text.h"
#include "flamediff/table.h"
#include "painting/markdown.h"
#include "painting/numbers.h"

namespace pe::flamediff {
namespace {

using painting::Noise;

RawJson exact(const std::string& digits) { return {digits}; }

std::string percent_number(double share) { return fmt::format("{:.4f}", 100 * share); }

std::string_view basis_of(const Options& options) {
  if (!options.work.empty())
    return "work";
  return options.is_absolute ? "counts" : "shares";
}

void write_row(JsonWriter& json, const painting::CallTree& tree, const Comparison& comparison,
               const Row& row) {
  const Wholes& wholes = comparison.wholes;
  json.start_object();
  const auto add = [&](const std::string& prefix, const Sides& sides) {
    json.member(prefix + "before", exact(folded::to_text(sides.before)), prefix + "after",
                exact(folded::to_text(sides.after)), prefix + "before_percent",
                exact(percent_number(wholes.share_before(sides))), prefix + "after_percent",
                exact(percent_number(wholes.share_after(sides))), prefix + "change_percent",
                exact(percent_number(wholes.change(sides))));
  };
  add("", comparison.functions.sides[row.name]);
  add("self_", comparison.self_of_functions.sides[row.name]);
  const Verdict& verdict = row.verdict;
  json.member("verdict", verdict.noise == Noise::kUnknown ? "unknown" : word_for(verdict.noise),
              "is_of_self", verdict.is_of_self);
  json.key("interval_percent");
  if (verdict.noise == Noise::kUnknown) {
    json.value(std::nullopt);
  } else {
    json.start_array();
    json.value(exact(percent_number(verdict.interval.low)));
    json.value(exact(percent_number(verdict.interval.high)));
    json.end_array();
  }
  json.member("name", tree.name_text(row.name));
  json.end_object();
}

void write_json(const painting::CallTree& tree, const Comparison& comparison,
                const Options& options, Output& out) {
  const Rows rows = rows_of(tree, comparison, options);
  JsonWriter json(out);
  json.start_object();
  json.member("version", 1, "unit", options.page.count_name, "before",
              exact(folded::to_text(comparison.totals.before)), "after",
              exact(folded::to_text(comparison.totals.after)), "percent_of", basis_of(options),
              "knows_noise", comparison.knows_noise());
  json.break_line(" ");
  json.start_object("left_out");
  json.member("noise", rows.left_out, "lines", rows.more);
  json.end_object();
  json.break_line(" ");
  json.start_array("lines");
  for (const Row& row : rows.shown) {
    json.break_line("  ");
    write_row(json, tree, comparison, row);
  }
  json.end_array();
  json.end_object();
  out.write("\n");
}

void write_markdown(const painting::CallTree& tree, const Comparison& comparison,
                    const Options& options, Output& out) {
  const Rows rows = rows_of(tree, comparison, options);
  const Wholes& wholes = comparison.wholes;
  out.write(
      "| before | after | change | interval | verdict | function |\n"
      "| ---: | ---: | ---: | ---: | --- | --- |\n");
  for (const Row& row : rows.shown) {
    const Verdict& verdict = row.verdict;
    const Sides& sides = verdict.is_of_self ? comparison.self_of_functions.sides[row.name]
                                            : comparison.functions.sides[row.name];
    out.write(fmt::format("| {} | {} | {} | {} | {} | {} |\n", percent(wholes.share_before(sides)),
                          percent(wholes.share_after(sides)), signed_percent(wholes.change(sides)),
                          interval_text(verdict.noise, verdict.interval),
                          verdict.is_of_self ? "self" : word_for(verdict.noise),
                          painting::markdown_code(printable(tree.name_text(row.name)))));
  }
  out.write(fmt::format(
      "\nBefore {} {}, after {}{}.\n", painting::grouped_count(comparison.totals.before, 1),
      options.page.count_name, painting::grouped_count(comparison.totals.after, 1),
      rows.shown.empty() ? "; no function changed beyond noise"
      : rows.more > 0    ? fmt::format("; {} more functions changed", rows.more)
                         : ""));
}

}  // namespace

void write_data(const painting::CallTree& tree, const Comparison& comparison,
                const Options& options, Output& out) {
  if (options.table == TableForm::kJson)
    write_json(tree, comparison, options, out);
  else
    write_markdown(tree, comparison, options, out);
}

}  // namespace pe::flamediff

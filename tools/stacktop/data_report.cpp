// SPDX-License-Identifier: MIT
#include "stacktop/data_report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <functional>
#include <string>
#include <vector>

#include "base/io/json_writer.h"
#include "painting/markdown.h"
#include "stacktop/text_report.h"

namespace pe::stacktop {
namespace {

using painting::Count;

std::string percent_text(const Count& count, const Report& report) {
  return fmt::format("{:.4f}", percent_of(count, report.all));
}

RawJson exact(const std::string& digits) { return {digits}; }

/// Writes a count and its percentage, "self" and "self_percent".
void write_sum(JsonWriter& json, const std::string& name, const Count& count,
               const Report& report) {
  json.member(name, exact(folded::to_text(count)), name + "_percent",
              exact(percent_text(count, report)));
}

void write_line(JsonWriter& json, const Line& line, const Report& report) {
  json.start_object();
  if (report.has_self)
    write_sum(json, "self", line.sums.self, report);
  write_sum(json, "total", line.sums.total, report);
  if (report.has_waits) {
    write_sum(json, "on_cpu", on_cpu(line.sums), report);
    write_sum(json, "waiting", line.sums.waiting, report);
  }
  if (report.is_hierarchy)
    json.member("depth", line.depth);
  json.member("name", line.name);
  if (line.hint)
    json.member("hint", (*report.hints)[*line.hint].text);
  json.end_object();
}

void write_functions(JsonWriter& json, const Report& report) {
  json.break_line(" ");
  json.list("of", report.functions, std::identity());
  json.member("of_self", exact(folded::to_text(report.of_functions.self)), "of_total",
              exact(folded::to_text(report.of_functions.total)));
}

}  // namespace

void write_json(const Report& report, Output& out) {
  JsonWriter json(out);
  json.start_object();
  json.member("version", 1, "view", report.view, "unit", report.unit, "counted",
              exact(folded::to_text(report.all)));
  if (!report.functions.empty())
    write_functions(json, report);
  json.break_line(" ");
  json.start_object("left_out");
  json.member("lines", report.left_out, "count", exact(folded::to_text(report.left_out_count)),
              "deeper", report.deeper);
  json.end_object();
  json.break_line(" ");
  json.start_array("lines");
  for (const Line& line : report.lines) {
    json.break_line("  ");
    write_line(json, line, report);
  }
  if (!report.lines.empty())
    json.break_line(" ");
  json.end_array();
  json.end_object();
  out.write("\n");
}

namespace {

/// The cells of a line, or with nullptr the names of the columns.  `decimals` are those of
/// percentages.
std::vector<std::string> cells_of(const Line* line, const Report& report, int decimals) {
  std::vector<std::string> cells;
  const auto add = [&](const char* name, const auto& text) {
    cells.push_back(line == nullptr ? std::string(name) : text());
  };
  const auto add_sum = [&](const char* name, const char* percent_name, auto count) {
    add(name, [&] { return folded::to_text(count(*line)); });
    add(percent_name,
        [&] { return fmt::format("{:.{}f}", percent_of(count(*line), report.all), decimals); });
  };
  if (report.has_self)
    add_sum("self", "self_percent", [](const Line& l) { return l.sums.self; });
  add_sum("total", "total_percent", [](const Line& l) { return l.sums.total; });
  if (report.has_waits) {
    add("on_cpu", [&] { return folded::to_text(on_cpu(line->sums)); });
    add("waiting", [&] { return folded::to_text(line->sums.waiting); });
  }
  if (report.is_hierarchy)
    add("depth", [&] { return fmt::to_string(line->depth); });
  add("name", [&] { return shown(line->name); });
  if (report.hints != nullptr)
    add("hint", [&] { return line->hint ? shown((*report.hints)[*line->hint].text) : ""; });
  return cells;
}

}  // namespace

void write_tsv(const Report& report, Output& out) {
  out.write(fmt::format("{}\n", fmt::join(cells_of(nullptr, report, 0), "\t")));
  for (const Line& line : report.lines)
    out.write(fmt::format("{}\n", fmt::join(cells_of(&line, report, 4), "\t")));
}

void write_markdown(const Report& report, Output& out) {
  std::vector<std::string> heading = cells_of(nullptr, report, 0);
  std::string rule = "|";
  for (std::string& name : heading) {
    rule += name == "name" || name == "hint" ? " --- |" : " ---: |";
    if (name.ends_with("_percent"))
      name = "%";
    else if (name == "self" || name == "total")
      name += ", " + report.unit;
  }
  out.write(fmt::format("| {} |\n{}\n", fmt::join(heading, " | "), rule));
  for (const Line& line : report.lines) {
    std::vector<std::string> cells = cells_of(&line, report, 2);
    // The hint, if there is one, comes last.
    std::string& name = cells[cells.size() - (report.hints != nullptr ? 2 : 1)];
    name =
        std::string(report.is_hierarchy ? 2 * line.depth : 0, '.') + painting::markdown_code(name);
    out.write(fmt::format("| {} |\n", fmt::join(cells, " | ")));
  }
  if (report.left_out > 0)
    out.write(fmt::format("\n{} more, of {} {}\n", report.left_out, folded::to_text(report.all),
                          report.unit));
}

}  // namespace pe::stacktop

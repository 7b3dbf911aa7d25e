// SPDX-License-Identifier: MIT
#include "stacktop/data_report.h"

#include <fmt/format.h>

#include <functional>

#include "base/io/json_writer.h"
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
  json.member("view", report.view, "counted", exact(folded::to_text(report.all)));
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

void write_tsv(const Report& report, Output& out) {
  out.write(fmt::format(
      "{}total\ttotal_percent\t{}{}name{}\n", report.has_self ? "self\tself_percent\t" : "",
      report.has_waits ? "on_cpu\twaiting\t" : "", report.is_hierarchy ? "depth\t" : "",
      report.hints != nullptr ? "\thint" : ""));
  for (const Line& line : report.lines) {
    std::string text;
    if (report.has_self)
      text += fmt::format("{}\t{}\t", folded::to_text(line.sums.self),
                          percent_text(line.sums.self, report));
    text += fmt::format("{}\t{}\t", folded::to_text(line.sums.total),
                        percent_text(line.sums.total, report));
    if (report.has_waits)
      text += fmt::format("{}\t{}\t", folded::to_text(on_cpu(line.sums)),
                          folded::to_text(line.sums.waiting));
    if (report.is_hierarchy)
      text += fmt::format("{}\t", line.depth);
    text += shown(line.name);
    if (report.hints != nullptr)
      text += fmt::format("\t{}", line.hint ? shown((*report.hints)[*line.hint].text) : "");
    text += '\n';
    out.write(text);
  }
}

}  // namespace pe::stacktop

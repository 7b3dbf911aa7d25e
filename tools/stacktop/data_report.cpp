// SPDX-License-Identifier: MIT
#include "stacktop/data_report.h"

#include <fmt/format.h>

#include "base/json_text.h"
#include "stacktop/frame_text.h"

namespace pe::stacktop {
namespace {

using picture::Count;

/// Returns `"self":12,"self_percent":3.4,"total":...`, without self if the report has none.
std::string sums_json(const Report& report, const Sums& sums) {
  std::string text;
  if (report.has_self)
    text += fmt::format(R"("self":{},"self_percent":{:.4f},)", folded::to_text(sums.self),
                        percent_of(sums.self, report.all));
  return text + fmt::format(R"("total":{},"total_percent":{:.4f})", folded::to_text(sums.total),
                            percent_of(sums.total, report.all));
}

void write_functions_json(const Report& report, Output& out) {
  if (report.functions.empty())
    return;
  std::string names;
  for (const std::string& name : report.functions)
    names += fmt::format("{}{}", names.empty() ? "" : ",", json_text(name));
  out.write(fmt::format(",\n \"of\":[{}],\"of_self\":{},\"of_total\":{}", names,
                        folded::to_text(report.of_functions.self),
                        folded::to_text(report.of_functions.total)));
}

}  // namespace

void write_json(const Report& report, Output& out) {
  out.write(fmt::format(R"({{"view":{},"counted":{})", json_text(report.view),
                        folded::to_text(report.all)));
  write_functions_json(report, out);
  out.write(
      fmt::format(",\n \"left_out\":{{\"lines\":{},\"count\":{},\"deeper\":{}}},\n \"lines\":[",
                  report.left_out, folded::to_text(report.left_out_count), report.deeper));
  bool is_first = true;
  for (const Line& line : report.lines) {
    out.write(is_first ? "\n  {" : ",\n  {");
    is_first = false;
    out.write(sums_json(report, line.sums));
    if (report.is_hierarchy)
      out.write(fmt::format(",\"depth\":{}", line.depth));
    out.write(fmt::format(",\"name\":{}", json_text(line.name)));
    if (line.hint)
      out.write(fmt::format(",\"hint\":{}", json_text((*report.hints)[*line.hint].text)));
    out.write("}");
  }
  out.write(is_first ? "]}\n" : "\n ]}\n");
}

void write_tsv(const Report& report, Output& out) {
  out.write(fmt::format(
      "{}total\ttotal_percent\t{}name{}\n", report.has_self ? "self\tself_percent\t" : "",
      report.is_hierarchy ? "depth\t" : "", report.hints != nullptr ? "\thint" : ""));
  for (const Line& line : report.lines) {
    std::string text;
    if (report.has_self)
      text += fmt::format("{}\t{:.4f}\t", folded::to_text(line.sums.self),
                          percent_of(line.sums.self, report.all));
    text += fmt::format("{}\t{:.4f}\t", folded::to_text(line.sums.total),
                        percent_of(line.sums.total, report.all));
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

// SPDX-License-Identifier: MIT
#include "stackfold/formats/call_trees/visual_studio.h"

#include <string>
#include <vector>

#include "stackfold/formats/call_trees/call_tree.h"
#include "stackfold/formats/pprof/sample_types.h"
#include "stackfold/formats/text.h"

namespace pe::fold::visual_studio {
namespace {

struct Known {
  std::string_view column, type, unit;
  std::optional<std::uint64_t> (*parse)(std::string_view text);
};
constexpr Known kKnown[] = {
    {"Exclusive Samples", "samples", "count", parse_grouped},
    {"Elapsed Exclusive Time %", "time", "hundredths of a percent", parse_hundredths},
    {"Number of Calls", "calls", "count", parse_grouped},
};

struct Column {
  std::size_t at;
  const Known* known;
};

struct Header {
  std::size_t level, function;
  std::optional<std::size_t> module;
  std::vector<SampleType> types;
  std::vector<Column> columns;  ///< of the types
};

std::optional<Header> parse_header(std::string_view line) {
  const auto fields = split_csv(line);
  if (!fields)
    return std::nullopt;
  const auto level = find_column(*fields, "Level");
  const auto function = find_column(*fields, "Function Name");
  if (!level || !function)
    return std::nullopt;
  Header header{*level, *function, find_column(*fields, "Module Name"), {}, {}};
  for (const Known& known : kKnown) {
    if (const auto at = find_column(*fields, known.column)) {
      header.types.push_back({std::string(known.type), std::string(known.unit)});
      header.columns.push_back({*at, &known});
    }
  }
  return header.types.empty() ? std::nullopt : std::optional(std::move(header));
}

class Folder {
 public:
  Folder(Input& input, const Options& options, folded::FoldedCounts& counts)
      : lines_(input, report_), options_(options), types_(counts, options), tree_(counts) {}

  TextReport fold() {
    while (const auto line = lines_.next())
      take(*line);
    types_.finish();
    return report_;
  }

 private:
  void take(std::string_view line) {
    if (!header_) {
      header_ = parse_header(line);
      if (!header_)
        lines_.ignore(line);
      else if (!types_.choose(header_->types, 0))
        report_.damage = no_such_type(options_.event.value_or(""), header_->types);
    } else if (!trim(line).empty() && !take_row(line)) {
      lines_.ignore(line);
    }
  }

  bool take_row(std::string_view line) {
    const auto fields = split_csv(line);
    if (!fields || fields->size() <= std::max(header_->level, header_->function))
      return false;
    const auto level = parse_number<std::size_t>((*fields)[header_->level]);
    std::vector<std::uint64_t> values;
    for (const Column& column : header_->columns) {
      const auto value =
          column.at < fields->size() ? column.known->parse((*fields)[column.at]) : std::nullopt;
      if (!value)
        return false;
      values.push_back(*value);
    }
    if (!level || !tree_.enter(*level, name_of(*fields)))
      return false;
    for (std::size_t type = 0; type < values.size(); ++type)
      if (values[type] > 0)
        types_.add(tree_.stack(), type, values[type]);
    ++report_.samples;
    return true;
  }

  [[nodiscard]] std::string name_of(const std::vector<std::string>& fields) const {
    const std::string& function = fields[header_->function];
    const bool has_module = options_.with_modules && header_->module &&
                            *header_->module < fields.size() && !fields[*header_->module].empty();
    return has_module ? fields[*header_->module] + "`" + function : function;
  }

  TextReport report_;
  TextLines lines_;
  const Options& options_;
  SampleTypes types_;
  CallTree tree_;
  std::optional<Header> header_;
};

}  // namespace

std::optional<std::uint64_t> parse_grouped(std::string_view text) {
  constexpr std::size_t kGroup = 3;
  std::string digits;
  std::size_t since_separator = 0;
  std::string_view separator;
  while (!text.empty()) {
    if (is_digit(text[0])) {
      digits += text[0];
      ++since_separator;
      text.remove_prefix(1);
      continue;
    }
    // A no-break space has two bytes; a narrow one has three.
    const auto length = std::min(text.find_first_of("0123456789"), text.size());
    const std::string_view found = text.substr(0, length);
    const bool is_first = separator.empty();
    const bool is_known = found == "," || found == "." || found == " " || found == "'" ||
                          found == "\xc2\xa0" || found == "\xe2\x80\xaf";
    if (!is_known || (!is_first && (found != separator || since_separator != kGroup)) ||
        (is_first && (since_separator == 0 || since_separator > kGroup)))
      return std::nullopt;
    separator = found;
    since_separator = 0;
    text.remove_prefix(length);
  }
  if (!separator.empty() && since_separator != kGroup)
    return std::nullopt;
  return parse_number<std::uint64_t>(digits);
}

std::optional<std::uint64_t> parse_hundredths(std::string_view text) {
  constexpr std::size_t kDecimals = 3;  // with the point
  if (text.size() <= kDecimals)
    return std::nullopt;
  const char point = text[text.size() - kDecimals];
  std::string digits(text.substr(0, text.size() - kDecimals));
  digits += text.substr(text.size() - kDecimals + 1);
  return point == '.' || point == ',' ? parse_number<std::uint64_t>(digits) : std::nullopt;
}

bool looks_like(std::string_view head) {
  const auto line = take_line(head);
  return line && parse_header(*line);
}

TextReport fold(Input& input, const Options& options, folded::FoldedCounts& counts) {
  return Folder(input, options, counts).fold();
}

}  // namespace pe::fold::visual_studio

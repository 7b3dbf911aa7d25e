// SPDX-License-Identifier: MIT
#include "stackfold/formats/call_trees/vtune.h"

#include <optional>
#include <string>
#include <vector>

#include "folded/count.h"
#include "stackfold/formats/call_trees/call_tree.h"
#include "stackfold/formats/pprof/sample_types.h"
#include "stackfold/formats/text.h"

namespace pe::fold::vtune {
namespace {

constexpr std::string_view kFunctions = "Function Stack";
constexpr std::string_view kSelf = ":Self";

struct Column {
  std::size_t at;
  bool is_seconds;
};

struct Header {
  std::vector<SampleType> types;
  std::vector<Column> columns;  ///< of the types
  std::optional<std::size_t> module;
};

std::optional<Header> parse_header(std::string_view line) {
  const auto fields = split_csv(line);
  if (!fields || fields->front() != kFunctions)
    return std::nullopt;
  Header header;
  header.module = find_column(*fields, "Module");
  for (std::size_t at = 1; at < fields->size(); ++at) {
    std::string_view name = (*fields)[at];
    if (!name.ends_with(kSelf))
      continue;
    name.remove_suffix(kSelf.size());
    const bool is_seconds = name.find("Time") != name.npos;
    header.types.push_back({std::string(name), is_seconds ? "nanoseconds" : "count"});
    header.columns.push_back({at, is_seconds});
  }
  return header.types.empty() ? std::nullopt : std::optional(std::move(header));
}

/// Converts seconds, "0.016612", to nanoseconds, or parses a count; nullopt if it is not a number.
std::optional<std::uint64_t> parse_value(std::string_view text, bool is_seconds) {
  if (text.empty())
    return 0;
  const auto number = folded::parse_count(text);
  if (!number || !is_seconds)
    return number ? std::optional(number->whole) : std::nullopt;
  const auto value = folded::times(*number, folded::Count::kOne);
  return value ? std::optional(value->whole) : std::nullopt;
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
      if (header_ && !types_.choose(header_->types, 0))
        report_.damage = no_such_type(options_.event.value_or(""), header_->types);
    } else if (!trim(line).empty() && !take_row(line)) {
      lines_.ignore(line);
    }
  }

  bool take_row(std::string_view line) {
    const auto fields = split_csv(line);
    if (!fields || fields->front().empty())
      return false;
    std::vector<std::uint64_t> values;
    for (const Column& column : header_->columns) {
      const auto value = column.at < fields->size()
                             ? parse_value((*fields)[column.at], column.is_seconds)
                             : std::nullopt;
      if (!value)
        return false;
      values.push_back(*value);
    }
    if (!tree_.enter(line.find_first_not_of(' '), name_of(*fields)))
      return false;
    for (std::size_t type = 0; type < values.size(); ++type)
      if (values[type] > 0)
        types_.add(tree_.stack(), type, values[type]);
    ++report_.samples;
    return true;
  }

  [[nodiscard]] std::string name_of(const std::vector<std::string>& fields) const {
    const bool has_module =
        options_.with_modules && header_->module && *header_->module < fields.size();
    const std::string module = has_module ? fields[*header_->module] : "";
    return module.empty() || module == "[Unknown]" ? fields[0] : module + "`" + fields[0];
  }

  TextReport report_;
  TextLines lines_;
  const Options& options_;
  SampleTypes types_;
  CallTree tree_;
  std::optional<Header> header_;
};

}  // namespace

bool looks_like(std::string_view head) {
  while (const auto line = take_line(head))
    if (parse_header(*line))
      return true;
  return false;
}

TextReport fold(Input& input, const Options& options, folded::FoldedCounts& counts) {
  return Folder(input, options, counts).fold();
}

}  // namespace pe::fold::vtune

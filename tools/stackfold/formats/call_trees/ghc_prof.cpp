// SPDX-License-Identifier: MIT
#include "stackfold/formats/call_trees/ghc_prof.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "folded/count.h"
#include "stackfold/formats/call_trees/call_tree.h"
#include "stackfold/formats/pprof/sample_types.h"
#include "stackfold/formats/text.h"

namespace pe::fold::ghc_prof {
namespace {

constexpr std::uint64_t kTenths = 10;
constexpr std::size_t kNameColumns = 2;  ///< the cost centre and its module

struct Column {
  std::string_view type, unit;
  std::size_t at;        ///< among the numbers of a row
  std::uint64_t factor;  ///< that makes the number whole
};
/// A row has the first six or all eight of these numbers: no., entries, %time, %alloc, %time and
/// %alloc with callees, ticks, bytes.
constexpr Column kColumns[] = {
    {"time", "tenths of a percent", 2, kTenths},
    {"alloc", "tenths of a percent", 3, kTenths},
    {"ticks", "count", 6, 1},
    {"bytes", "bytes", 7, 1},
};
constexpr std::size_t kNumbers = 6;
constexpr std::size_t kNumbersWithTicks = 8;

std::vector<std::string_view> words_of(std::string_view line) {
  std::vector<std::string_view> words;
  for (line = trim(line); !line.empty();) {
    const auto end = std::min(line.find_first_of(" \t"), line.size());
    words.push_back(line.substr(0, end));
    line = trim(line.substr(end));
  }
  return words;
}

/// Returns how many numbers a row has; nullopt if the line is not the table's header.
std::optional<std::size_t> numbers_of_header(std::string_view line) {
  if (!line.starts_with("COST CENTRE"))
    return std::nullopt;
  const auto words = words_of(line);
  const auto number = std::find(words.begin(), words.end(), "no.");
  const auto numbers = static_cast<std::size_t>(words.end() - number);
  const bool is_known = numbers == kNumbers || numbers == kNumbersWithTicks;
  return is_known && number[1] == "entries" ? std::optional(numbers) : std::nullopt;
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
  enum class State { kBefore, kHeader, kTable };

  void take(std::string_view line) {
    if (const auto numbers = numbers_of_header(line)) {
      begin(*numbers);
    } else if (trim(line).empty()) {
      state_ = state_ == State::kHeader ? State::kTable : State::kBefore;
    } else if (state_ == State::kTable && !take_row(line)) {
      lines_.ignore(line);
    }
  }

  void begin(std::size_t numbers) {
    const auto types = numbers == kNumbers ? std::span(kColumns).first(2) : std::span(kColumns);
    std::vector<SampleType> names;
    for (const Column& column : types)
      names.push_back({std::string(column.type), std::string(column.unit)});
    state_ = State::kHeader;
    if (numbers_ == 0 && !types_.choose(names, 0))
      report_.damage = no_such_type(options_.event.value_or(""), names);
    numbers_ = numbers;
  }

  bool take_row(std::string_view line) {
    const auto words = words_of(line);
    if (words.size() < kNameColumns + numbers_)
      return false;
    const auto numbers = std::span(words).last(numbers_);
    std::vector<std::uint64_t> values;
    for (const Column& column : kColumns) {
      if (column.at >= numbers.size())
        break;
      const auto number = folded::parse_count(numbers[column.at]);
      const auto value = number ? folded::times(*number, column.factor) : std::nullopt;
      if (!value || value->billionths != 0)
        return false;
      values.push_back(value->whole);
    }
    const auto depth = line.find_first_not_of(' ');
    if (!tree_.enter(depth, fmt::format("{}.{}", words[1], words[0])))
      return false;
    for (std::size_t type = 0; type < values.size(); ++type)
      if (values[type] > 0)
        types_.add(tree_.stack(), type, values[type]);
    ++report_.samples;
    return true;
  }

  TextReport report_;
  TextLines lines_;
  const Options& options_;
  SampleTypes types_;
  CallTree tree_;
  State state_ = State::kBefore;
  std::size_t numbers_ = 0;  ///< in a row; 0 before the first table
};

}  // namespace

bool looks_like(std::string_view head) {
  while (const auto line = take_line(head))
    if (numbers_of_header(*line))
      return true;
  return false;
}

TextReport fold(Input& input, const Options& options, folded::FoldedCounts& counts) {
  return Folder(input, options, counts).fold();
}

}  // namespace pe::fold::ghc_prof

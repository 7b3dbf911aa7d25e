// Reads call trees that profilers print as tables: each row is a function below its caller, with
// its own weights.
//
// The time and allocation profile NAME.prof, which GHC's runtime writes (+RTS -p or -P):
//
//   COST CENTRE MODULE SRC        no.  entries  %time %alloc   %time %alloc  ticks  bytes
//
//   MAIN        MAIN   <built-in> 168        0    2.6    0.0   100.0  100.0    510    456
//    main       Main   Main.hs:6  336        1   97.4  100.0    97.4  100.0  19317   9048
//
// The depth of a cost centre is its indentation.  The first %time and %alloc are its own; the
// second ones include its callees.  Only -P prints ticks and bytes (its own).  The column SRC
// exists since GHC 8.  The reader skips the preceding table of the most expensive cost centres.
// Source: GHC User's Guide, "Profiling"; profiles of GHC 7 to 9.
//
// The call tree that Intel VTune prints as CSV, after other lines:
//
//   Function Stack,CPU Time:Self,Module
//   Total,0.0,[Unknown]
//    main,0.0,app
//     "max<int, int>",0.016612,app
//
// The command is: vtune -report top-down -call-stack-mode all -column="CPU Time:Self",Module
//   -format csv -csv-delimiter comma.  The depth of a function is its indentation.
// Source: vtune -help report; published reports of VTune 2019.
//
// The call tree that Visual Studio's profiler exports as CSV, CallTreeSummary.csv:
//
//   Level,Function Name,Number of Calls,Elapsed Inclusive Time %,Elapsed Exclusive Time %,
//       Avg Elapsed Inclusive Time,Avg Elapsed Exclusive Time,Module Name,      (one line)
//   0,"app.exe",0,100.00,0.00,0.00,0.00,"",
//   1,"App.Main()","2,893,824",54.37,4.21,0.04,0.00,"app.exe",
//
// The file is UTF-8 with a byte order mark.  Numbers above 999 are quoted and have the group
// separator of the user's language.  A sampled profile has "Exclusive Samples" instead of calls and
// times.
// Source: VSPerfReport /Summary:CallTree and published reports.
//
// Visual Studio prints the depth as a number.  So depth is limited: otherwise a small input could
// make stackfold allocate much memory.
// SPDX-License-Identifier: MIT
#include "stackfold/formats/readers.h"

#include <algorithm>
#include <span>
#include <utility>

#include "base/characters.h"
#include "folded/count.h"
#include "stackfold/formats/pprof/sample_types.h"
#include "stackfold/formats/text.h"
#include "stackfold/frame_text.h"

namespace pe::fold {
namespace {

using Fields = std::vector<std::string>;

/// Returns the weight in a field; nullopt if there is none.
using ParseWeight = std::optional<std::uint64_t> (*)(std::string_view text);

struct Column {
  std::size_t at;  ///< among the fields of a row
  ParseWeight parse;
};

/// The meaning of a row's fields, from the table's header.
struct Header {
  std::vector<SampleType> types;
  std::vector<Column> columns;  ///< of the types
  std::size_t function = 0;
  std::optional<std::size_t> module;
  std::optional<std::size_t> level;  ///< nullopt: the indentation is the depth
  std::size_t fields = 1;            ///< that a row has at least

  void add(std::string_view type, std::string_view unit, std::size_t at, ParseWeight parse) {
    types.push_back({std::string(type), std::string(unit)});
    columns.push_back({at, parse});
  }
};

struct Table {
  /// Returns nullopt if the line is not the header of such a table.
  std::optional<Header> (*parse_header)(std::string_view line);
  /// Returns nullopt if the line is no row.
  std::optional<Fields> (*split_row)(std::string_view line, const Header& header);
  bool has_blank_ends = false;      ///< blank lines follow the header and the last row
  bool starts_at_header = false;    ///< any line before it is outside of the format
  std::string_view no_module = {};  ///< the module of a function that has none
};

template <const Table& table>
class TableCollapser : public TextCollapser {
 public:
  using TextCollapser::TextCollapser;

  void take(std::string_view line) {
    const bool may_be_header = !header_ || table.has_blank_ends;
    if (auto header = may_be_header ? table.parse_header(line) : std::nullopt) {
      begin(std::move(*header));
    } else if (!header_ && table.starts_at_header) {
      lines_.ignore(line);
    } else if (trim(line).empty()) {
      if (table.has_blank_ends)
        state_ = state_ == State::kHeader ? State::kTable : State::kBefore;
    } else if (state_ == State::kTable && !take_row(line)) {
      lines_.ignore(line);
    }
  }

  void end() { types_.finish(); }

 private:
  enum class State { kBefore, kHeader, kTable };

  void begin(Header header) {
    if (!header_ && !types_.choose(header.types, 0))
      report_.damage = no_such_type(options_.event.value_or(""), header.types);
    header_ = std::move(header);
    state_ = table.has_blank_ends ? State::kHeader : State::kTable;
  }

  bool take_row(std::string_view line) {
    const auto fields = table.split_row(line, *header_);
    if (!fields || fields->size() < header_->fields)
      return false;
    std::vector<std::uint64_t> values;
    for (const Column& column : header_->columns) {
      const auto value =
          column.at < fields->size() ? column.parse((*fields)[column.at]) : std::nullopt;
      if (!value)
        return false;
      values.push_back(*value);
    }
    const auto depth = header_->level ? parse_number<std::size_t>((*fields)[*header_->level])
                                      : std::optional(line.find_first_not_of(' '));
    if (!depth || !enter(*depth, name_of(*fields)))
      return false;
    for (std::size_t type = 0; type < values.size(); ++type)
      if (values[type] > 0)
        types_.add(frames_, type, values[type]);
    ++report_.samples;
    return true;
  }

  /// Adds a function below its caller, the last one at a lower depth; false if it is too deep, or
  /// more than one level below the previous row.
  bool enter(std::size_t depth, std::string_view name) {
    constexpr std::size_t kMostDepth = 4096;
    if (depth > frames_.size() || depth >= kMostDepth)
      return false;
    frames_.resize(depth);
    frames_.push_back(counts_.frames().intern(clean_name(name)));
    return true;
  }

  [[nodiscard]] std::string name_of(const Fields& fields) const {
    const std::string& function = fields[header_->function];
    const bool has_module =
        options_.with_modules && header_->module && *header_->module < fields.size();
    const std::string module = has_module ? fields[*header_->module] : "";
    return module.empty() || module == table.no_module ? function : module + "`" + function;
  }

  SampleTypes types_{counts_, options_};
  std::vector<folded::FrameId> frames_;  ///< from the root to the function of the last row
  State state_ = State::kBefore;
  std::optional<Header> header_;  ///< the last one
};

/// Cuts off and returns the quoted field at the start of `line`; nullopt if it does not end.
std::optional<std::string> take_quoted(std::string_view& line) {
  std::string field;
  for (std::size_t i = 1; i < line.size(); ++i) {
    if (line[i] != '"') {
      field += line[i];
    } else if (i + 1 < line.size() && line[i + 1] == '"') {
      field += line[i++];
    } else {
      line.remove_prefix(i + 1);
      return field;
    }
  }
  return std::nullopt;
}

/// Returns the index of the column with that name; nullopt if there is none.
std::optional<std::size_t> find_column(const Fields& header, std::string_view name) {
  const auto found = std::find(header.begin(), header.end(), name);
  return found == header.end() ? std::nullopt
                               : std::optional(static_cast<std::size_t>(found - header.begin()));
}

}  // namespace

std::optional<Fields> split_csv(std::string_view line) {
  Fields fields;
  for (;;) {
    const auto begin = std::min(line.find_first_not_of(" \t"), line.size());
    std::string field;
    if (begin < line.size() && line[begin] == '"') {
      line.remove_prefix(begin);
      const auto quoted = take_quoted(line);
      if (!quoted)
        return std::nullopt;
      field = *quoted;
    }
    const auto comma = std::min(line.find(','), line.size());
    const std::string_view bare = trim(line.substr(0, comma));
    if (!field.empty() && !bare.empty())
      return std::nullopt;  // text after the quotes
    fields.push_back(field.empty() ? std::string(bare) : std::move(field));
    if (comma == line.size())
      return fields;
    line.remove_prefix(comma + 1);
  }
}

}  // namespace pe::fold

namespace pe::fold::ghc_prof {
namespace {

std::vector<std::string_view> words_of(std::string_view line) {
  std::vector<std::string_view> words;
  for (line = trim(line); !line.empty();) {
    const auto end = std::min(line.find_first_of(" \t"), line.size());
    words.push_back(line.substr(0, end));
    line = trim(line.substr(end));
  }
  return words;
}

template <std::uint64_t factor>
std::optional<std::uint64_t> parse_times(std::string_view text) {
  const auto number = folded::parse_count(text);
  const auto value = number ? folded::times(*number, factor) : std::nullopt;
  return value && value->billionths == 0 ? std::optional(value->whole) : std::nullopt;
}

/// The fields of a row are the function and six or eight numbers: no., entries, %time, %alloc,
/// %time and %alloc with callees, ticks, bytes.
std::optional<Header> parse_header(std::string_view line) {
  constexpr std::size_t kFields = 7;
  constexpr std::size_t kFieldsWithTicks = 9;
  constexpr std::uint64_t kTenths = 10;
  if (!line.starts_with("COST CENTRE"))
    return std::nullopt;
  const auto words = words_of(line);
  const auto number = std::find(words.begin(), words.end(), "no.");
  Header header;
  header.fields = static_cast<std::size_t>(words.end() - number) + 1;
  if ((header.fields != kFields && header.fields != kFieldsWithTicks) || number[1] != "entries")
    return std::nullopt;
  header.add("time", "tenths of a percent", 3, parse_times<kTenths>);
  header.add("alloc", "tenths of a percent", 4, parse_times<kTenths>);
  if (header.fields == kFieldsWithTicks) {
    header.add("ticks", "count", 7, parse_times<1>);
    header.add("bytes", "bytes", 8, parse_times<1>);
  }
  return header;
}

/// Joins the cost centre and its module, and skips its place, which may have blanks.
std::optional<Fields> split_row(std::string_view line, const Header& header) {
  const auto words = words_of(line);
  const std::size_t numbers = header.fields - 1;
  if (words.size() < 2 + numbers)
    return std::nullopt;
  Fields fields{std::string(words[1]).append(".").append(words[0])};
  for (const std::string_view number : std::span(words).last(numbers))
    fields.emplace_back(number);
  return fields;
}

constexpr Table kTable{
    .parse_header = parse_header, .split_row = split_row, .has_blank_ends = true};

}  // namespace

bool looks_like(std::string_view head) { return has_line(head, parse_header); }

TextReport fold(Input& input, const Options& options, folded::FoldedCounts& counts) {
  return fold_lines<TableCollapser<kTable>>(input, options, counts);
}

}  // namespace pe::fold::ghc_prof

namespace pe::fold::vtune {
namespace {

std::optional<std::uint64_t> parse_whole(std::string_view text) {
  const auto number = text.empty() ? folded::Count{} : folded::parse_count(text);
  return number ? std::optional(number->whole) : std::nullopt;
}

/// Converts seconds, "0.016612", to nanoseconds.
std::optional<std::uint64_t> parse_seconds(std::string_view text) {
  const auto number = text.empty() ? folded::Count{} : folded::parse_count(text);
  const auto value = number ? folded::times(*number, folded::Count::kOne) : std::nullopt;
  return value ? std::optional(value->whole) : std::nullopt;
}

std::optional<Header> parse_header(std::string_view line) {
  constexpr std::string_view kSelf = ":Self";
  const auto fields = split_csv(line);
  if (!fields || fields->front() != "Function Stack")
    return std::nullopt;
  Header header;
  header.module = find_column(*fields, "Module");
  for (std::size_t at = 1; at < fields->size(); ++at) {
    std::string_view name = (*fields)[at];
    if (!name.ends_with(kSelf))
      continue;
    name.remove_suffix(kSelf.size());
    if (name.find("Time") != kNone)
      header.add(name, "nanoseconds", at, parse_seconds);
    else
      header.add(name, "count", at, parse_whole);
  }
  return header.types.empty() ? std::nullopt : std::optional(std::move(header));
}

std::optional<Fields> split_row(std::string_view line, const Header& /*header*/) {
  auto fields = split_csv(line);
  return fields && !fields->front().empty() ? std::move(fields) : std::nullopt;
}

constexpr Table kTable{
    .parse_header = parse_header, .split_row = split_row, .no_module = "[Unknown]"};

}  // namespace

bool looks_like(std::string_view head) { return has_line(head, parse_header); }

TextReport fold(Input& input, const Options& options, folded::FoldedCounts& counts) {
  return fold_lines<TableCollapser<kTable>>(input, options, counts);
}

}  // namespace pe::fold::vtune

namespace pe::fold::visual_studio {
namespace {

/// Converts "54.37" or "54,37" to hundredths; nullopt unless it has two decimals.
std::optional<std::uint64_t> parse_hundredths(std::string_view text) {
  constexpr std::size_t kDecimals = 3;  // with the point
  if (text.size() <= kDecimals)
    return std::nullopt;
  const char point = text[text.size() - kDecimals];
  std::string digits(text.substr(0, text.size() - kDecimals));
  digits += text.substr(text.size() - kDecimals + 1);
  return point == '.' || point == ',' ? parse_number<std::uint64_t>(digits) : std::nullopt;
}

std::optional<Header> parse_header(std::string_view line) {
  const auto fields = split_csv(line);
  const auto level = fields ? find_column(*fields, "Level") : std::nullopt;
  const auto function = fields ? find_column(*fields, "Function Name") : std::nullopt;
  if (!level || !function)
    return std::nullopt;
  Header header;
  header.function = *function;
  header.module = find_column(*fields, "Module Name");
  header.level = level;
  header.fields = std::max(*level, *function) + 1;
  if (const auto at = find_column(*fields, "Exclusive Samples"))
    header.add("samples", "count", *at, parse_grouped);
  if (const auto at = find_column(*fields, "Elapsed Exclusive Time %"))
    header.add("time", "hundredths of a percent", *at, parse_hundredths);
  if (const auto at = find_column(*fields, "Number of Calls"))
    header.add("calls", "count", *at, parse_grouped);
  return header.types.empty() ? std::nullopt : std::optional(std::move(header));
}

std::optional<Fields> split_row(std::string_view line, const Header& /*header*/) {
  return split_csv(line);
}

constexpr Table kTable{
    .parse_header = parse_header, .split_row = split_row, .starts_at_header = true};

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

bool looks_like(std::string_view head) {
  const auto line = take_line(head);
  return line && parse_header(*line);
}

TextReport fold(Input& input, const Options& options, folded::FoldedCounts& counts) {
  return fold_lines<TableCollapser<kTable>>(input, options, counts);
}

}  // namespace pe::fold::visual_studio

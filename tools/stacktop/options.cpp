// SPDX-License-Identifier: MIT
#include "stacktop/options.h"

#include <fmt/format.h>
#include <boost/program_options/options_description.hpp>
#include <boost/program_options/value_semantic.hpp>

#include <initializer_list>
#include <string_view>
#include <utility>

#include "base/cli/command_line.h"
#include "base/error.h"
#include "base/parse_number.h"

namespace pe::stacktop {
namespace {

namespace po = boost::program_options;

/// Limits the depth of hierarchies: without a limit, that of one function could fill a disk.
constexpr std::uint32_t kMostLevels = 10'000;

[[noreturn]] void refuse(const char* option, std::string_view expected, const std::string& text) {
  throw UsageError(fmt::format("--{}: {}: '{}'", option, expected, text));
}

/// Throws UsageError if more than one of `options` is given.
void check_alternatives(const CommandLine& line, std::initializer_list<const char*> options) {
  const char* given = nullptr;
  for (const char* option : options) {
    if (!line.has(option))
      continue;
    if (given != nullptr)
      throw UsageError(fmt::format("--{}, --{}: cannot be combined", given, option));
    given = option;
  }
}

constexpr Choice<std::optional<By>> kBys[] = {
    {"comm", By::kComm},
    {"module", By::kModule},
    {"thread", By::kThread},
};

constexpr Choice<When> kWhens[] = {
    {"always", When::kAlways},
    {"never", When::kNever},
    {"auto", When::kAuto},
};

void read_shape(const CommandLine& line, Options& options) {
  check_alternatives(line, {"by", "callers", "callees"});
  check_alternatives(line, {"by", "tree"});
  check_alternatives(line, {"self", "total"});
  options.by = choose(line, "by", kBys, options.by);
  for (const char* option : {"callers", "callees"})
    if (const std::string* text = line.text(option)) {
      if (text->empty())
        refuse(option, "not a function", *text);
      options.function = *text;
    }
  if (line.has("callers"))
    options.direction = Direction::kCallers;
  options.is_hierarchy = line.has("tree");
  options.sort_by_total = line.has("total") || (options.is_hierarchy && !line.has("self"));
}

void read_limits(const CommandLine& line, Options& options) {
  if (options.is_hierarchy) {
    options.top = 5;
    options.least_share = Cutoff().share;
  }
  if (const std::string* text = line.text("top")) {
    options.top = parse_number<std::size_t>(*text);
    if (!options.top)
      refuse("top", "not a number of lines", *text);
    if (*options.top == 0)
      options.top.reset();
  }
  if (const std::string* text = line.text("percent-limit")) {
    const auto percent = parse_decimal(*text);
    if (!percent || *percent > 100)
      refuse("percent-limit", "not a percentage", *text);
    options.least_share = *percent / 100;
  }
  if (const std::string* text = line.text("max-depth")) {
    const auto levels = parse_number<std::uint32_t>(*text);
    if (!levels || *levels == 0 || *levels > kMostLevels)
      refuse("max-depth", fmt::format("not a number of frames from 1 to {}", kMostLevels), *text);
    options.max_levels = *levels;
  }
  if (const std::string* text = line.text("columns")) {
    options.columns = parse_number<std::size_t>(*text);
    if (!options.columns || *options.columns == 0)
      refuse("columns", "not a number of columns", *text);
  }
}

}  // namespace

void add_options(po::options_description& options) {
  const auto text = [](const char* name) { return po::value<std::string>()->value_name(name); };
  const auto texts = [](const char* name) {
    return po::value<std::vector<std::string>>()->value_name(name);
  };
  options.add_options()                                                                         //
      ("top,n", text("N"), "number of lines; 0: all (default 20, with --tree 5)")               //
      ("self", "sort by the count of stacks that end in the function (default)")                //
      ("total", "sort by the count of stacks that contain the function (default with --tree)")  //
      ("callers", text("FN"), "show the callers of FN, a name or a regular expression")         //
      ("callees", text("FN"), "show the callees of FN")                                         //
      ("tree", "show the call tree under each hot function, or of --callers, --callees")        //
      ("by", one_of("WHAT", kBys), "count by comm, module or thread, not by function")          //
      ("spans", "show how long calls took, from a sample stream of pe-record --span")           //
      ("percent-limit", text("N"),
       "leave out lines below N % of everything (default 0, with --tree 0.5)")                   //
      ("max-depth", text("N"), "maximum depth of a call tree in frames (default 128)")           //
      ("columns", text("N"), "shorten names to fit N columns (default: those of a terminal)")    //
      ("json", "write JSON")                                                                     //
      ("tsv", "write tab-separated columns")                                                     //
      ("markdown", "write a table for tickets")                                                  //
      ("hints", "show advice for well-known functions")                                          //
      ("hints-file", texts("FILE"), "the same, but apply the rules of FILE first (repeatable)")  //
      ("color", one_of("WHEN", kWhens), "colours: always, never, or auto: on a terminal (default)");
}

Options read_options(const CommandLine& line) {
  Options options;
  check_alternatives(line, {"json", "tsv", "markdown"});
  read_shape(line, options);
  read_limits(line, options);
  for (const auto& [name, format] :
       {std::pair("json", Format::kJson), {"tsv", Format::kTsv}, {"markdown", Format::kMarkdown}})
    if (line.has(name))
      options.format = format;
  options.has_spans = line.has("spans");
  for (const char* option : {"self", "total", "callers", "callees", "tree", "by", "percent-limit",
                             "max-depth", "hints", "hints-file", "markdown"})
    if (options.has_spans && line.has(option))
      throw UsageError(fmt::format("--{}: cannot be combined with --spans", option));
  options.color = choose(line, "color", kWhens, When::kAuto);
  options.hint_files = line.texts("hints-file");
  options.has_hints = line.has("hints") || line.has("hints-file");
  return options;
}

}  // namespace pe::stacktop

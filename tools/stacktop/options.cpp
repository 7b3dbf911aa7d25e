// SPDX-License-Identifier: MIT
#include "stacktop/options.h"

#include <fmt/format.h>

#include <boost/program_options/options_description.hpp>
#include <boost/program_options/value_semantic.hpp>
#include <initializer_list>
#include <string_view>

#include "base/cli/choice.h"
#include "base/error.h"
#include "base/parse_decimal.h"
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
      throw UsageError(fmt::format("--{}, --{}: only one of them", given, option));
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
  options.add_options()                                                              //
      ("top,n", text("N"), "lines to show, 0 for all (default 20; 5 trees)")         //
      ("self", "sort by what stacks end in (default)")                               //
      ("total", "sort by what stacks pass through (default with --tree)")            //
      ("callers", text("FN"), "who calls FN: a name, or else a regular expression")  //
      ("callees", text("FN"), "whom FN calls")                                       //
      ("tree", "the hierarchy under each hot function, or of --callers, --callees")  //
      ("by", one_of("WHAT", kBys),
       "one line a comm, module or thread instead of a function")                            //
      ("percent-limit", text("N"), "leave out lines below N % of all (0; in trees 0.5)")     //
      ("max-depth", text("N"), "frames that a tree is deep (default 128)")                   //
      ("columns", text("N"), "shorten names to lines of N columns (default on a terminal)")  //
      ("json", "write JSON")                                                                 //
      ("tsv", "write tab-separated columns")                                                 //
      ("hints", "say what is usually done about such functions")                             //
      ("hints-file", texts("FILE"), "the same, by this file first")                          //
      ("color", one_of("WHEN", kWhens), "always, never, or auto: on a terminal (default)");
}

Options read_options(const CommandLine& line) {
  Options options;
  check_alternatives(line, {"json", "tsv"});
  read_shape(line, options);
  read_limits(line, options);
  if (line.has("json") || line.has("tsv"))
    options.format = line.has("json") ? Format::kJson : Format::kTsv;
  options.color = choose(line, "color", kWhens, When::kAuto);
  options.hint_files = line.texts("hints-file");
  options.has_hints = line.has("hints") || line.has("hints-file");
  return options;
}

}  // namespace pe::stacktop

// SPDX-License-Identifier: MIT
#include "flamediff/options.h"

#include <fmt/format.h>
#include <boost/program_options/options_description.hpp>
#include <boost/program_options/value_semantic.hpp>

#include <algorithm>
#include <filesystem>
#include <string_view>
#include <system_error>

#include "base/cli/command_line.h"
#include "base/error.h"
#include "base/parse_number.h"
#include "base/text.h"
#include "painting/svg/colors.h"

namespace pe::flamediff {
namespace {

namespace po = boost::program_options;

using painting::refuse;

std::uint64_t read_whole(const CommandLine& line, const char* option, std::uint64_t fallback) {
  const auto* text = line.text(option);
  if (text == nullptr)
    return fallback;
  const auto number = parse_number<std::uint64_t>(*text);
  if (!number)
    refuse(option, "not a whole number", *text);
  return *number;
}

/// Reads the units of work of the runs of one side, "100+98+103".
void read_work_of_side(std::string_view text, std::size_t runs, Options& options) {
  const std::size_t before = options.work.size();
  for (bool is_more = true; is_more;) {
    const auto end = text.find('+');
    const auto number = parse_decimal(text.substr(0, end));
    if (!number || !(*number > 0))
      refuse("per", "not a number of units of work", std::string(text.substr(0, end)));
    options.work.push_back(*number);
    is_more = end != std::string_view::npos;
    text.remove_prefix(is_more ? end + 1 : text.size());
  }
  if (options.work.size() - before != runs)
    throw UsageError(
        fmt::format("--per: a side has {} for {} (join the numbers of several runs by '+')",
                    plural(options.work.size() - before, "number"), plural(runs, "profile")));
}

void read_work(const CommandLine& line, Options& options) {
  const auto* text = line.text("per");
  if (text == nullptr)
    return;
  if (line.has("absolute"))
    throw UsageError("--per, --absolute: cannot be combined");
  const auto comma = text->find(',');
  if (comma == std::string::npos)
    refuse("per", "not BEFORE,AFTER", *text);
  read_work_of_side(std::string_view(*text).substr(0, comma), options.before.size(), options);
  read_work_of_side(std::string_view(*text).substr(comma + 1), options.after.size(), options);
  options.is_absolute = true;
}

constexpr Choice<WidthFrom> kWidthsFrom[] = {
    {"before", WidthFrom::kBefore},
    {"after", WidthFrom::kAfter},
    {"both", WidthFrom::kBoth},
};

std::optional<double> read_fail_over(const CommandLine& line) {
  const auto* text = line.text("fail-over");
  if (text == nullptr)
    return std::nullopt;
  std::string_view number = *text;
  if (number.ends_with('%'))
    number.remove_suffix(1);
  const auto value = parse_decimal(number);
  if (!value || *value < 0)
    refuse("fail-over", "not a percentage", *text);
  return value;
}

/// Rejects options after the --.  A file may have the name of an option, so only operands that are
/// not files count as options.
void refuse_options(const std::vector<std::string>& operands) {
  std::error_code ignored;
  for (const std::string& operand : operands)
    if (operand.size() > 1 && operand[0] == '-' && !std::filesystem::exists(operand, ignored))
      throw UsageError(
          fmt::format("{}: no such profile (options go before --)", in_quotes(operand)));
}

/// Reads the files of both sides.
void read_operands(const CommandLine& line, Options& options) {
  options.before = line.operands;
  options.after = line.second_operands;
  if (!line.has("runs")) {
    std::vector<std::string> files = line.operands;
    files.insert(files.end(), line.second_operands.begin(), line.second_operands.end());
    if (files.size() == 1 && !options.is_perl)
      files.emplace_back("-");
    if (options.is_perl && files.size() > 2)  // difffolded.pl ignores them
      files.resize(2);
    if (files.size() != 2)
      throw UsageError(files.empty()
                           ? "two profiles are needed"
                           : "more than two profiles (compare runs: --runs A1 A2 -- B1 B2)");
    options.before = {files[0]};
    options.after = {files[1]};
  } else {
    refuse_options(options.after);
  }
  if (options.before.empty() || options.after.empty())
    throw UsageError("--runs: a side has no profile (write --runs A1 A2 -- B1 B2)");
  const auto from_stdin =
      std::ranges::count(options.before, "-") + std::ranges::count(options.after, "-");
  if (from_stdin > 1)
    throw UsageError("-: standard input can be read only once");
}

/// Reads --json and --markdown.
TableForm read_table_form(const CommandLine& line) {
  TableForm found = TableForm::kText;
  for (const auto& [name, form] :
       {std::pair("json", TableForm::kJson), {"markdown", TableForm::kMarkdown}}) {
    if (!line.has(name))
      continue;
    if (line.has("folded") || found != TableForm::kText)
      throw UsageError(fmt::format("--{}, --{}: cannot be combined",
                                   line.has("folded") ? "folded" : "json", name));
    found = form;
  }
  return found;
}

void read_output(const CommandLine& line, Options& options) {
  if (line.has("folded") && line.has("text"))
    throw UsageError("--folded, --text: cannot be combined");
  options.table = read_table_form(line);
  const bool is_table = line.has("text") || options.table != TableForm::kText;
  options.output = line.has("folded") ? Form::kFolded : is_table ? Form::kText : Form::kPicture;
  options.normalizes = line.has("normalize");
  options.strips_hex = line.has("strip-hex");
  if (options.output != Form::kFolded) {
    for (const char* option : {"normalize", "strip-hex", "compat"})
      if (line.has(option))
        throw UsageError(fmt::format("--{}: only with --folded", option));
    return;
  }
  for (const char* option :
       {"runs", "fail-over", "strip", "absolute", "per", "only-significant", "with-noise"})
    if (line.has(option))
      throw UsageError(fmt::format("--{}: cannot be combined with --folded", option));
}

}  // namespace

void add_options(po::options_description& options) {
  const auto text = [](const char* name) { return po::value<std::string>()->value_name(name); };
  options.add_options()                                                     //
      ("text", "print a table of the functions that changed beyond noise")  //
      ("json", "print that table as JSON")                                  //
      ("markdown", "print that table for tickets")                          //
      ("folded", "print lines \"stack before after\", for flamesvg")        //
      ("fail-over", text("N%"),
       "exit with status 3 if a share grew by more than N%, beyond noise")                        //
      ("runs", "compare several profiles per side: --runs A1 A2 -- B1 B2")                        //
      ("period", text("N"), "counts per sample; 0: counts are not samples (default: detected)")   //
      ("absolute", "compare counts, not shares of each profile")                                  //
      ("per", text("BEFORE,AFTER"), "compare the cost per unit of work, from each side's units")  //
      ("only-significant", "dim changes that may be noise")                                       //
      ("with-noise", "with --text: also print changes that may be noise")                         //
      ("width-from", one_of("SIDE", kWidthsFrom),
       "profile that sets the widths: before, after (default) or both")  //
      ("strip", po::value<std::vector<std::string>>()->value_name("REGEX"),
       "cut matching text from names (repeatable)")                          //
      ("no-strip", "keep addresses, template arguments and .cold in names")  //
      ("top,n", text("N"), "rows of the table; 0: all (default 20)");
  painting::add_page_options(options);
}

void add_compatible_options(po::options_description& options) {
  options.add_options()                                                              //
      ("compat", "with --folded: read lines exactly as difffolded.pl does")          //
      ("normalize", "with --folded: scale the first profile to the second's total")  //
      ("strip-hex,s", "with --folded: write 0x... for hexadecimal numbers");
  painting::add_compatible_page_options(options);
}

Options read_options(const CommandLine& line) {
  Options options;
  static_cast<painting::PageOptions&>(options) =
      painting::read_page_options(line, "Differential Flame Graph");
  options.is_perl = line.has("compat");
  read_output(line, options);
  read_operands(line, options);
  options.width_from = choose(line, "width-from", kWidthsFrom, WidthFrom::kAfter);
  options.is_absolute = line.has("absolute");
  read_work(line, options);
  options.is_only_significant = line.has("only-significant");
  options.shows_noise = line.has("with-noise");
  if (options.shows_noise && options.output != Form::kText)
    throw UsageError("--with-noise: only with --text, --json or --markdown");
  options.cuts_build_details = !line.has("no-strip");
  options.strip = line.texts("strip");
  options.fail_over = read_fail_over(line);
  if (line.has("period"))
    options.period = read_whole(line, "period", 0);
  options.names_unit = line.has("countname");
  options.has_unit = options.page.count_name != "samples";
  options.top = read_whole(line, "top", options.top);
  return options;
}

}  // namespace pe::flamediff

// SPDX-License-Identifier: MIT
#include "base/cli/command_line.h"

#include <fmt/format.h>
#include <boost/program_options/parsers.hpp>
#include <boost/program_options/positional_options.hpp>
#include <boost/program_options/variables_map.hpp>

#include <algorithm>

#include "base/error.h"

namespace pe {
namespace {

namespace po = boost::program_options;

/// Returns whether the option in `arg` ("-F", "--freq") takes the next argument as its value.
bool takes_next(const po::options_description& options, const std::string& arg) {
  const auto has_value = [&](const std::string& name) {
    const auto* option = options.find_nothrow(name, false);
    return option != nullptr && option->semantic()->max_tokens() > 0;
  };
  if (arg.starts_with("--"))
    return arg.find('=') == std::string::npos && has_value(arg.substr(2));
  // In "-qp 12" and "-p12", the first letter that has a value takes the rest of the argument, or
  // the next argument.
  for (std::size_t i = 1; i < arg.size(); ++i)
    if (has_value(std::string("-") + arg[i]))
      return i + 1 == arg.size();
  return false;
}

/// Returns the index of the first argument of the command; args.size() if there is none.
std::size_t find_command(const po::options_description& options,
                         std::span<const std::string> args) {
  std::size_t i = 0;
  while (i < args.size() && args[i].size() > 1 && args[i][0] == '-' && args[i] != "--")
    i += takes_next(options, args[i]) ? 2 : 1;
  return std::min(i, args.size());
}

std::string option_names(const po::option_description& option) {
  const std::string letter = option_letter(option);
  std::string names =
      fmt::format("{}--{}", letter.empty() ? "    " : "-" + letter + ", ", option.long_name());
  if (option.semantic()->max_tokens() > 0)
    names += " " + option.semantic()->name();
  return names;
}

/// Appends `text`, broken between words.  Every line but the first is indented.
void append_wrapped(std::string& out, std::string_view text, std::size_t indent) {
  constexpr std::size_t kColumns = 80;
  std::size_t column = indent;
  while (!text.empty()) {
    const std::string_view word = text.substr(0, text.find(' '));
    if (column > indent && column + 1 + word.size() > kColumns) {
      out += "\n" + std::string(indent, ' ');
      column = indent;
    } else if (column > indent) {
      out += ' ';
      ++column;
    }
    out += word;
    column += word.size();
    text.remove_prefix(std::min(text.size(), word.size() + 1));
  }
  out += '\n';
}

/// Appends an option in two columns: names and description.
void append_option(std::string& out, std::string names, std::string_view description) {
  constexpr std::size_t kTextColumn = 28;
  if (description.empty()) {
    out += names + "\n";
    return;
  }
  if (names.size() + 2 > kTextColumn)
    names += "\n" + std::string(kTextColumn, ' ');
  else
    names.resize(kTextColumn, ' ');
  out += names;
  append_wrapped(out, description, kTextColumn);
}

void append_options(std::string& out, const po::options_description& options) {
  for (const auto& option : options.options())
    append_option(out, "  " + option_names(*option), option->description());
}

/// Returns all options but those for users of other scripts.
po::options_description own_options(const Tool& tool) {
  po::options_description options;
  tool.add_options(options);
  if (tool.is_filter)
    options.add_options()                                            //
        ("output,o", po::value<std::string>()->value_name("FILE"),   //
         "write to FILE instead of standard output")                 //
        ("quiet,q", "print only errors, no summaries or warnings");  //
  options.add_options()                                              //
      ("help,h", "print this help and exit")                         //
      ("version,V", "print the version and exit");
  return options;
}

/// Returns the texts of an option: one, several, or none.
std::vector<std::string> texts_of(const po::variable_value& value) {
  if (const auto* one = boost::any_cast<std::string>(&value.value()))
    return {*one};
  const auto* several = boost::any_cast<std::vector<std::string>>(&value.value());
  return several == nullptr ? std::vector<std::string>{} : *several;
}

}  // namespace

const std::string* CommandLine::text(std::string_view option) const {
  const auto found = values.find(option);
  return found == values.end() ? nullptr : &found->second.at(0);
}

std::vector<std::string> CommandLine::texts(std::string_view option) const {
  const auto found = values.find(option);
  return found == values.end() ? std::vector<std::string>{} : found->second;
}

po::options_description all_options(const Tool& tool) {
  po::options_description options = own_options(tool);
  if (tool.add_compatible_options != nullptr)
    tool.add_compatible_options(options);
  return options;
}

std::string option_letter(const po::option_description& option) {
  const std::string shown =
      option.canonical_display_name(po::command_line_style::allow_dash_for_short);
  return shown.starts_with('-') ? shown.substr(1) : "";
}

CommandLine parse_command_line(const Tool& tool, const po::options_description& options,
                               std::span<const std::string> args) {
  CommandLine line;
  if (tool.runs_command) {
    const std::size_t command = find_command(options, args);
    const auto rest = args.subspan(command);
    line.command.assign(rest.begin() + (!rest.empty() && rest[0] == "--" ? 1 : 0), rest.end());
    args = args.first(command);
  }
  if (tool.has_two_sides) {
    const auto separator = std::find(args.begin(), args.end(), "--");
    const auto first = static_cast<std::size_t>(separator - args.begin());
    if (separator != args.end())
      line.second_operands.assign(separator + 1, args.end());
    args = args.first(first);
  }
  po::options_description all;
  all.add(options).add_options()("operand", po::value(&line.operands));
  po::positional_options_description positional;
  positional.add("operand", -1);
  // With guessing, every new option could break scripts that abbreviate.
  constexpr int kStyle =
      po::command_line_style::unix_style & ~po::command_line_style::allow_guessing;
  po::variables_map parsed;
  try {
    po::store(po::command_line_parser({args.begin(), args.end()})
                  .options(all)
                  .positional(positional)
                  .style(kStyle)
                  .run(),
              parsed);
    po::notify(parsed);
  } catch (const po::error& e) {
    throw UsageError(e.what());
  }
  for (const auto& [name, value] : parsed)
    if (name != "operand")
      line.values.emplace(name, texts_of(value));
  if (line.operands.empty() && !tool.runs_command && !tool.has_two_sides)
    line.operands.emplace_back("-");
  return line;
}

std::string perl_usage_text(const Tool& tool, const PerlName& script,
                            const po::options_description& options) {
  std::string text = fmt::format("Usage: {} [OPTION]... [FILE]...\n", script.name);
  for (const PerlOption& perl : script.options) {
    const po::option_description* ours = options.find_nothrow(std::string(our_name(perl)), false);
    std::string names = fmt::format("      --{}", perl.name);
    if (ours != nullptr && ours->semantic()->max_tokens() > 0)
      names += " " + ours->semantic()->name();
    append_option(text, names, ours != nullptr ? ours->description() : "");
  }
  return text + fmt::format("\nMore in {}(1), under COMPATIBILITY.\n", tool.name);
}

std::string help_text(const Tool& tool) {
  std::string text =
      fmt::format("Usage: {} {}\n{}\n\nOptions:\n", tool.name, tool.synopsis, tool.summary);
  append_options(text, own_options(tool));
  if (tool.add_compatible_options != nullptr) {
    po::options_description compatible;
    tool.add_compatible_options(compatible);
    text += fmt::format("\nCompatibility with {}:\n", tool.compatible_with);
    append_options(text, compatible);
  }
  return text + fmt::format("\nMore in {}(1).\n", tool.name);
}

}  // namespace pe

// Parses a command line, and prints the help text that describes it.
//
// boost::program_options implements the grammar.  This module adds two rules: abbreviations are
// refused, and the options of a command to run are not parsed.
// SPDX-License-Identifier: MIT
#pragma once

#include <fmt/format.h>
#include <boost/program_options/options_description.hpp>
#include <boost/program_options/value_semantic.hpp>

#include <span>
#include <string>
#include <string_view>

#include "base/cli/run.h"
#include "base/error.h"

namespace pe {

// Options that accept one of a few words.  One table of the words serves parsing, messages and
// completions.

/// A word and its value.
template <typename Value>
struct Choice {
  std::string_view name;
  Value value;
};

/// An option value with a list of its known words, for option_table().  The parser also accepts
/// other words; the code that reads the value reports them.
class OneOf : public boost::program_options::typed_value<std::string> {
 public:
  /// `names` has the form "auto, perf, bpf".
  OneOf(const char* value_name, std::string names)
      : typed_value(nullptr), names_(std::move(names)) {
    this->value_name(value_name);
  }
  [[nodiscard]] const std::string& names() const { return names_; }

 private:
  std::string names_;
};

/// Creates a value for add_options(), which then owns it, like boost::program_options::value().
inline OneOf* one_of(const char* value_name, std::string names) {
  return new OneOf(value_name, std::move(names));
}

/// Returns "auto, perf, bpf", the names of a range's members.
template <typename Choices>
std::string names_of(const Choices& choices) {
  std::string names;
  for (const auto& choice : choices)
    names.append(names.empty() ? "" : ", ").append(choice.name);
  return names;
}

/// Returns the member of a range with that name.  Throws UsageError for `option` if there is none.
template <typename Choices>
const auto& find_choice(const char* option, const Choices& choices, std::string_view name) {
  for (const auto& choice : choices)
    if (choice.name == name)
      return choice;
  throw UsageError(fmt::format("--{}: not one of {}: '{}'", option, names_of(choices), name));
}

template <typename Value, std::size_t kCount>
OneOf* one_of(const char* value_name, const Choice<Value> (&choices)[kCount]) {
  return one_of(value_name, names_of(choices));
}

/// Returns the chosen value, or `otherwise` if the option was not given.  Throws UsageError.
template <typename Value, std::size_t kCount>
Value choose(const CommandLine& line, const char* option, const Choice<Value> (&choices)[kCount],
             Value otherwise) {
  const std::string* text = line.text(option);
  return text == nullptr ? otherwise : find_choice(option, choices, *text).value;
}

/// Returns all options of the tool, with those that every tool or every filter has.
boost::program_options::options_description all_options(const Tool& tool);

/// Returns "F" for "-F"; empty if the option has only a long name.
std::string option_letter(const boost::program_options::option_description& option);

/// Throws UsageError.
CommandLine parse_command_line(const Tool& tool,
                               const boost::program_options::options_description& options,
                               std::span<const std::string> args);

/// Returns the usage text under the name of a script, with the options of the script.
std::string perl_usage_text(const Tool& tool, const PerlName& script,
                            const boost::program_options::options_description& options);

/// Returns the text that --help prints; no line is wider than 80 columns.
std::string help_text(const Tool& tool);

}  // namespace pe

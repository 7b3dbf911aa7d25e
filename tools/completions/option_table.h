// Writes the options of a tool as data, from which completions for shells are generated.
// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <vector>

#include "base/cli/command_line.h"
#include "base/io/json_writer.h"

namespace pe::completions {

namespace detail {

inline void write_option(const boost::program_options::option_description& option,
                         JsonWriter& json) {
  const auto& semantic = *option.semantic();
  const bool has_value = semantic.max_tokens() > 0;
  const auto* one_of = dynamic_cast<const OneOf*>(&semantic);
  const auto* texts =
      dynamic_cast<const boost::program_options::typed_value<std::vector<std::string>>*>(&semantic);
  json.start_object();
  json.member("name", option.long_name(), "letter", option_letter(option), "value",
              has_value ? semantic.name() : "", "choices", one_of != nullptr ? one_of->names() : "",
              "repeats", texts != nullptr, "text", option.description());
  json.end_object();
}

}  // namespace detail

/// Writes a JSON object with "name", "summary", "runs_command" and "options".  The options are in
/// the order of --help, each with "name", "letter" ("" if it has none), "value" ("FILE"; "" if it
/// takes none), "choices" ("auto, perf"; "" if it takes others or any), "repeats" and "text".
inline void write_option_table(const Tool& tool, JsonWriter& json) {
  const boost::program_options::options_description options = all_options(tool);
  json.start_object();
  json.member("name", tool.name, "summary", tool.summary, "runs_command", tool.runs_command);
  json.start_array("options");
  for (const auto& option : options.options())
    detail::write_option(*option, json);
  json.end_array();
  json.end_object();
}

}  // namespace pe::completions

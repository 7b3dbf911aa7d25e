// SPDX-License-Identifier: MIT
#include "base/cli/option_table.h"

#include "base/cli/choice.h"
#include "base/cli/command_line.h"

namespace pe {
namespace {

namespace po = boost::program_options;

void write_option(const po::option_description& option, JsonWriter& json) {
  const auto& semantic = *option.semantic();
  const bool has_value = semantic.max_tokens() > 0;
  const auto* one_of = dynamic_cast<const OneOf*>(&semantic);
  const auto* texts = dynamic_cast<const po::typed_value<std::vector<std::string>>*>(&semantic);
  json.start_object();
  json.member("name", option.long_name(), "letter", option_letter(option), "value",
              has_value ? semantic.name() : "", "choices", one_of != nullptr ? one_of->names() : "",
              "repeats", texts != nullptr, "text", option.description());
  json.end_object();
}

}  // namespace

void write_option_table(const Tool& tool, JsonWriter& json) {
  const po::options_description options = all_options(tool);
  json.start_object();
  json.member("name", tool.name, "summary", tool.summary, "runs_command", tool.runs_command);
  json.start_array("options");
  for (const auto& option : options.options())
    write_option(*option, json);
  json.end_array();
  json.end_object();
}

}  // namespace pe

// SPDX-License-Identifier: MIT
#include "base/cli/option_table.h"

#include <fmt/format.h>

#include "base/cli/choice.h"
#include "base/cli/command_line.h"
#include "base/json_text.h"

namespace pe {
namespace {

namespace po = boost::program_options;

std::string option_object(const po::option_description& option) {
  const auto& semantic = *option.semantic();
  const bool has_value = semantic.max_tokens() > 0;
  const auto* one_of = dynamic_cast<const OneOf*>(&semantic);
  const auto* texts = dynamic_cast<const po::typed_value<std::vector<std::string>>*>(&semantic);
  return fmt::format(
      R"({{"name": {}, "letter": {}, "value": {}, "choices": {}, "repeats": {}, "text": {}}})",
      json_text(option.long_name()), json_text(option_letter(option)),
      json_text(has_value ? semantic.name() : ""), json_text(one_of ? one_of->names() : ""),
      texts != nullptr, json_text(option.description()));
}

}  // namespace

std::string option_table(const Tool& tool) {
  const po::options_description options = all_options(tool);
  std::string objects;
  for (const auto& option : options.options())
    objects += (objects.empty() ? "" : ",\n    ") + option_object(*option);
  return fmt::format(
      "{{\n  \"name\": {}, \"summary\": {}, \"runs_command\": {},\n  \"options\": [\n    {}]}}",
      json_text(tool.name), json_text(tool.summary), tool.runs_command, objects);
}

}  // namespace pe

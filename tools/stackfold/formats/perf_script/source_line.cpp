// SPDX-License-Identifier: MIT
#include "stackfold/formats/perf_script/source_line.h"

#include "base/characters.h"
#include "stackfold/frame_text.h"

namespace pe::fold {
namespace {

constexpr std::string_view kSpaces = " \t\r\n\v\f";

}  // namespace

std::string_view trimmed(std::string_view text) {
  const auto begin = text.find_first_not_of(kSpaces);
  return begin == kNone ? std::string_view{}
                        : text.substr(begin, text.find_last_not_of(kSpaces) + 1 - begin);
}

bool is_source_line(std::string_view line) {
  constexpr std::string_view kIndent = "  ";
  return line.starts_with(kIndent) && line.size() > kIndent.size() &&
         kSpaces.find(line[kIndent.size()]) == kNone;
}

std::string source_suffix(std::string_view line) {
  std::string_view text = trimmed(line);
  text = text.substr(0, text.find(" (discriminator "));
  if (text.starts_with("??") || text.ends_with(']') || text.empty())
    return {};
  return ":" + clean_name(text);
}

}  // namespace pe::fold

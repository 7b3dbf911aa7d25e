// SPDX-License-Identifier: MIT
#include "stackfold/formats/perf_script/source_line.h"

#include "base/characters.h"
#include "stackfold/frame_text.h"

namespace pe::fold {
namespace {

constexpr std::string_view kSpaces = " \t\r\n\v\f";

std::string_view trimmed(std::string_view text) {
  const auto begin = text.find_first_not_of(kSpaces);
  return begin == kNone ? std::string_view{}
                        : text.substr(begin, text.find_last_not_of(kSpaces) + 1 - begin);
}

/// Returns "ab" for "a[1]b[2]".
std::string without_brackets(std::string_view text) {
  std::string kept;
  for (auto open = text.find('['); open != kNone; open = text.find('[')) {
    const auto close = text.find(']', open);
    if (close == kNone)
      break;
    kept += text.substr(0, open);
    text.remove_prefix(close + 1);
  }
  return kept += text;
}

}  // namespace

bool is_source_line(std::string_view line) {
  constexpr std::string_view kIndent = "  ";
  return line.starts_with(kIndent) && line.size() > kIndent.size() &&
         kSpaces.find(line[kIndent.size()]) == kNone;
}

std::string source_suffix(std::string_view line, bool is_perl) {
  std::string_view text = trimmed(line);
  if (is_perl) {
    const std::string kept = without_brackets(text);
    return kept.empty() ? kept : ":" + kept;
  }
  text = text.substr(0, text.find(" (discriminator "));
  if (text.starts_with("??") || text.ends_with(']') || text.empty())
    return {};
  return ":" + clean_name(text);
}

}  // namespace pe::fold

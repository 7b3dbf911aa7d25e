// SPDX-License-Identifier: MIT
#include "stackfold/half_mangled.h"

#include <algorithm>
#include <optional>

#include "base/characters.h"
#include "base/parse_number.h"

namespace pe::names {
namespace {

constexpr std::string_view kHashStart = "::h";
constexpr std::size_t kHashDigits = 16;

struct Escape {
  std::string_view code, text;
};
constexpr Escape kEscapes[] = {
    {"$SP$", "@"}, {"$BP$", "*"}, {"$RF$", "&"}, {"$LT$", "<"}, {"$GT$", ">"},
    {"$LP$", "("}, {"$RP$", ")"}, {"$C$", ","},  {"..", "::"},
};

std::string_view without_llvm_suffix(std::string_view name) {
  const auto suffix = name.ends_with(')') ? name.rfind(" (.llvm.") : kNone;
  return name.substr(0, suffix);
}

/// Decodes "$u20$" at the start of `text`; only printable ASCII characters have this escape.
std::optional<char> coded_character(std::string_view text) {
  const auto end = text.find('$', 1);
  if (!text.starts_with("$u") || end == kNone)
    return std::nullopt;
  const auto code = parse_number<std::uint32_t>(text.substr(2, end - 2), 16);
  return code && *code >= ' ' && *code <= '~' ? std::optional(static_cast<char>(*code))
                                              : std::nullopt;
}

/// Decodes one character or escape at the start of `text` and moves it to `out`.
void take_character(std::string_view& text, std::string& out) {
  for (const auto& [code, meaning] : kEscapes) {
    if (text.starts_with(code)) {
      out += meaning;
      text.remove_prefix(code.size());
      return;
    }
  }
  const auto coded = coded_character(text);
  out += coded.value_or(text[0]);
  text.remove_prefix(coded ? text.find('$', 1) + 1 : 1);
}

}  // namespace

bool is_half_mangled(std::string_view name) {
  name = without_llvm_suffix(name);
  constexpr std::size_t kHashBytes = kHashStart.size() + kHashDigits;
  if (name.size() <= kHashBytes)
    return false;
  const std::string_view hash = name.substr(name.size() - kHashBytes);
  return hash.starts_with(kHashStart) &&
         std::all_of(hash.begin() + kHashStart.size(), hash.end(), is_hex);
}

std::string demangle_half_mangled(std::string_view name) {
  std::string out;
  if (!is_half_mangled(name))
    return out.append(name);
  name = without_llvm_suffix(name);
  std::string_view left = name.substr(0, name.size() - kHashStart.size() - kHashDigits);
  while (!left.empty()) {
    const bool begins_element = out.empty() || out.ends_with("::") || out.ends_with('`');
    if (begins_element && left.starts_with("_$"))
      left.remove_prefix(1);  // the '_' only makes the element start like an identifier
    take_character(left, out);
  }
  return out;
}

}  // namespace pe::names

// SPDX-License-Identifier: MIT
#include "base/name_parts.h"

#include <algorithm>

#include "base/characters.h"

namespace pe {
namespace {

bool opens(char c) { return c == '(' || c == '<' || c == '{' || c == '['; }
bool closes(char c) { return c == ')' || c == '>' || c == '}' || c == ']'; }

/// Returns `at` if another word than "operator" is there.
std::size_t end_of_operator(std::string_view name, std::size_t at) {
  constexpr std::string_view kOperator = "operator";
  if (!name.substr(at).starts_with(kOperator) || (at > 0 && is_word(name[at - 1])))
    return at;
  const std::size_t end = at + kOperator.size();
  if (end < name.size() && is_word(name[end]))
    return at;
  return end + length_of_operator(name.substr(end));
}

}  // namespace

std::size_t length_of_operator(std::string_view text) {
  for (const std::string_view symbol : {"<=>", "<<=", ">>=", "->*", "<<", ">>", "<=", ">=", "->",
                                        "()", "[]", "<", ">", " new[]", " delete[]"})
    if (text.starts_with(symbol))
      return symbol.size();
  return 0;
}

/// Each bracket that never closes costs a scan of all the text after it.  An untrusted name may
/// hold nothing but such brackets, so after 16 of them all are bytes.
std::size_t NameParts::next(std::size_t at) {
  constexpr int kMostOpen = 16;
  std::size_t depth = 0;
  for (std::size_t i = at; i < name_.size();) {
    const std::size_t end = end_of_operator(name_, i);
    const bool is_arrow = name_[i] == '>' && i > 0 && name_[i - 1] == '-';
    if (opens(name_[i]))
      depth += left_open_ < kMostOpen ? 1 : 0;
    else if (closes(name_[i]) && !is_arrow && depth > 0)
      --depth;
    i = std::max(end, i + 1);
    if (depth == 0)
      return i;
  }
  ++left_open_;
  return at + 1;
}

}  // namespace pe

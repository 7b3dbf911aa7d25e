// SPDX-License-Identifier: MIT
#include "stackfold/function_name.h"

#include <algorithm>
#include <optional>

#include "base/characters.h"

namespace pe::fold {
namespace {

constexpr std::string_view kAnonymous = "(anonymous namespace)";
constexpr std::string_view kOperator = "operator";

/// Returns the end of the operator ("()", "<<", "->*") whose word "operator" starts at `at`.
/// Returns `at` if another word is there.
std::size_t end_of_operator(std::string_view text, std::size_t at) {
  if (!text.substr(at).starts_with(kOperator) || (at > 0 && is_word(text[at - 1])))
    return at;
  std::size_t end = at + kOperator.size();
  if (end < text.size() && is_word(text[end]))
    return at;
  for (const std::string_view symbol :
       {"()", "[]", "<=>", "->*", "<<=", ">>=", "->", "<<", ">>", "<=", ">=", "<", ">"})
    if (text.substr(end).starts_with(symbol))
      return end + symbol.size();
  return end;
}

bool opens(char c) { return c == '(' || c == '<' || c == '{' || c == '['; }
bool closes(char c) { return c == ')' || c == '>' || c == '}' || c == ']'; }

/// Finds the ends of groups in brackets.  Each bracket that never closes costs a scan of all the
/// text after it.  An untrusted name may hold nothing but such brackets, so end() gives up after
/// 16 of them.
class Groups {
 public:
  explicit Groups(std::string_view text) : text_(text) {}
  /// Returns the position after the bracket that closes the one at `at`; nullopt if none does.
  std::optional<std::size_t> end(std::size_t at) {
    constexpr int kMostOpen = 16;
    if (left_open_ >= kMostOpen)
      return std::nullopt;
    const auto end = find_end(at);
    left_open_ += end ? 0 : 1;
    return end;
  }

 private:
  [[nodiscard]] std::optional<std::size_t> find_end(std::size_t at) const;

  std::string_view text_;
  int left_open_ = 0;
};

std::optional<std::size_t> Groups::find_end(std::size_t at) const {
  const std::string_view text = text_;
  std::size_t depth = 0;
  for (std::size_t i = at; i < text.size();) {
    const std::size_t behind_operator = end_of_operator(text, i);
    if (behind_operator != i) {
      i = behind_operator;
      continue;
    }
    const bool is_arrow = text[i] == '>' && i > 0 && text[i - 1] == '-';
    if (opens(text[i]))
      ++depth;
    else if (closes(text[i]) && !is_arrow && --depth == 0)
      return i + 1;
    ++i;
  }
  return std::nullopt;
}

/// Drops each list of parameters outside of other brackets, and the qualifiers after it
/// (" const", " &", " noexcept").
std::string without_parameters(std::string_view text) {
  std::string kept;
  Groups groups(text);
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t behind_operator = end_of_operator(text, i);
    const bool is_name =
        text.substr(i).starts_with(kAnonymous) || (text[i] == '(' && i > 0 && text[i - 1] == '.');
    std::optional<std::size_t> end =
        behind_operator != i ? std::optional(behind_operator) : std::nullopt;
    if (!end && opens(text[i]))
      end = groups.end(i);
    if (!end && text[i] == '(')
      break;  // it never closes
    const bool is_parameters = text[i] == '(' && behind_operator == i && !is_name && i > 0;
    if (!is_parameters)
      kept += text.substr(i, end.value_or(i + 1) - i);
    else if (text.substr(*end).starts_with(" const") || text.substr(*end).starts_with(" &") ||
             text.substr(*end).starts_with(" noexcept"))
      *end = std::min(text.find("::", *end), text.size());
    i = end.value_or(i + 1);
  }
  return kept;
}

}  // namespace

std::vector<std::string_view> split_inlined(std::string_view function) {
  std::vector<std::string_view> parts;
  if (function.empty())
    return parts;
  std::size_t begin = 0;
  Groups groups(function);
  for (std::size_t i = 0; i + 1 < function.size();) {
    const std::size_t skipped = end_of_operator(function, i);
    if (skipped != i) {
      i = skipped;
    } else if (opens(function[i])) {
      i = groups.end(i).value_or(i + 1);
    } else if (function[i] == '-' && function[i + 1] == '>') {
      parts.push_back(function.substr(begin, i - begin));
      begin = i += 2;
    } else {
      ++i;
    }
  }
  parts.push_back(function.substr(begin));
  return parts;
}

std::string function_name(std::string_view function, bool is_java) {
  return tidied(without_parameters(function), is_java);
}

std::string tidied(std::string name, bool is_java) {
  std::replace(name.begin(), name.end(), ';', ':');
  std::erase_if(name, [](char c) { return c == '"' || c == '\''; });
  if (is_java && name.starts_with('L') && name.find('/') != std::string::npos)
    name.erase(0, 1);
  return name;
}

std::string_view without_arguments(std::string_view text) {
  Groups groups(text);
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t behind_operator = end_of_operator(text, i);
    if (behind_operator != i) {
      i = behind_operator;
    } else if (text.substr(i).starts_with(" (") && !text.substr(i + 1).starts_with(kAnonymous)) {
      return text.substr(0, i);
    } else {
      i = opens(text[i]) ? groups.end(i).value_or(i + 1) : i + 1;
    }
  }
  return text;
}

}  // namespace pe::fold

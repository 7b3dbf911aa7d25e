// SPDX-License-Identifier: MIT
#include "stackfold/function_name.h"

#include <algorithm>

#include "base/name_parts.h"

namespace pe::fold {
namespace {

constexpr std::string_view kAnonymous = "(anonymous namespace)";
/// Drops each list of parameters outside of other brackets, and the qualifiers after it
/// (" const", " &", " noexcept").
std::string without_parameters(std::string_view text) {
  std::string kept;
  NameParts parts(text);
  for (std::size_t i = 0; i < text.size();) {
    std::size_t end = parts.next(i);
    if (text[i] == '(' && end == i + 1)
      break;  // it never closes
    const bool is_name =
        text.substr(i).starts_with(kAnonymous) || (text[i] == '(' && i > 0 && text[i - 1] == '.');
    if (text[i] != '(' || is_name || i == 0)
      kept += text.substr(i, end - i);
    else if (text.substr(end).starts_with(" const") || text.substr(end).starts_with(" &") ||
             text.substr(end).starts_with(" noexcept"))
      end = std::min(text.find("::", end), text.size());
    i = end;
  }
  return kept;
}

}  // namespace

std::vector<std::string_view> split_inlined(std::string_view function) {
  std::vector<std::string_view> parts;
  if (function.empty())
    return parts;
  std::size_t begin = 0;
  NameParts name(function);
  for (std::size_t i = 0; i + 1 < function.size();) {
    if (function.substr(i).starts_with("->")) {
      parts.push_back(function.substr(begin, i - begin));
      begin = i += 2;
    } else {
      i = name.next(i);
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
  NameParts parts(text);
  for (std::size_t i = 0; i < text.size(); i = parts.next(i))
    if (text.substr(i).starts_with(" (") && !text.substr(i + 1).starts_with(kAnonymous))
      return text.substr(0, i);
  return text;
}

}  // namespace pe::fold

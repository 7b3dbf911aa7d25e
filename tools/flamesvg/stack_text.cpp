// SPDX-License-Identifier: MIT
#include "flamesvg/stack_text.h"

#include <vector>

#include "painting/tree/stack_path.h"

namespace pe::flamesvg {

void reverse_frames(std::string_view stack, std::string& out) {
  stack = painting::without_empty_end(stack);
  out.clear();
  for (;;) {
    const auto separator = stack.rfind(';');
    if (separator == std::string_view::npos)
      break;
    out.append(stack.substr(separator + 1)).append(";");
    stack = stack.substr(0, separator);
  }
  out += stack;
}

void mark_wakers(std::string_view stack, std::string& out) {
  constexpr std::string_view kSeparator = ";--;";
  constexpr std::string_view kMark = "_[w]";
  std::vector<std::string_view> parts;
  for (auto end = stack.find(kSeparator); end != std::string_view::npos;
       end = stack.find(kSeparator)) {
    parts.push_back(stack.substr(0, end));
    stack.remove_prefix(end + kSeparator.size());
  }
  parts.push_back(stack);
  while (parts.size() > 1 && parts.back().empty())
    parts.pop_back();
  out.assign(parts.front()).append(kSeparator);
  for (std::size_t i = 1; i < parts.size(); ++i) {
    std::string_view part = parts[i];
    for (auto end = part.find(';'); end != std::string_view::npos; end = part.find(';')) {
      out.append(part.substr(0, end)).append(kMark).append(";");
      part.remove_prefix(end + 1);
    }
    out.append(part).append(kMark);
    if (i + 1 < parts.size())
      out += kSeparator;
  }
}

}  // namespace pe::flamesvg

// SPDX-License-Identifier: MIT
#include "flamesvg/stack_text.h"

#include "picture/tree/stack_path.h"

namespace pe::flamesvg {

void reverse_frames(std::string_view stack, std::string& out) {
  stack = picture::without_empty_end(stack);
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
  auto separator = stack.find(kSeparator);
  out = stack.substr(0, separator);
  out += kSeparator;
  while (separator != std::string_view::npos) {
    stack.remove_prefix(separator + kSeparator.size());
    separator = stack.find(kSeparator);
    std::string_view part = stack.substr(0, separator);
    for (auto end = part.find(';'); end != std::string_view::npos; end = part.find(';')) {
      out.append(part.substr(0, end)).append(kMark).append(";");
      part.remove_prefix(end + 1);
    }
    out.append(part).append(kMark);
    if (separator != std::string_view::npos)
      out += kSeparator;
  }
}

}  // namespace pe::flamesvg

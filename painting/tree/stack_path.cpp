// SPDX-License-Identifier: MIT
#include "painting/tree/stack_path.h"

#include "base/characters.h"

namespace pe::painting {

void StackPath::keep_common(std::string_view stack) {
  const std::size_t common = common_prefix(text_, stack);
  const auto is_shared = [&](std::size_t end) {
    return end < common || (end == common && (stack.size() == common || stack[common] == ';'));
  };
  while (!ends_.empty() && !is_shared(ends_.back()))
    ends_.pop_back();
  numbers_.resize(ends_.size());
  text_.resize(common);
  text_ += stack.substr(common);
}

}  // namespace pe::painting

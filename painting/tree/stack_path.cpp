// SPDX-License-Identifier: MIT
#include "painting/tree/stack_path.h"

#include "base/common_prefix.h"

namespace pe::painting {

void StackPath::keep_common(std::string_view stack) {
  const std::size_t common = common_prefix(text_, stack);
  const auto is_shared = [&](const Step& step) {
    return step.end < common ||
           (step.end == common && (stack.size() == common || stack[common] == ';'));
  };
  if (stack.empty())
    steps_.clear();  // an empty text has no frame; any other has at least one
  while (!steps_.empty() && !is_shared(steps_.back()))
    steps_.pop_back();
  text_.resize(common);
  text_ += stack.substr(common);
}

}  // namespace pe::painting

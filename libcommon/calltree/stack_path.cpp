// SPDX-License-Identifier: MIT
#include "calltree/stack_path.h"

#include <algorithm>
#include <cstring>

namespace pe::calltree {
namespace {

std::size_t common_prefix(std::string_view a, std::string_view b) {
  const std::size_t limit = std::min(a.size(), b.size());
  std::size_t i = 0;
  constexpr std::size_t kStep = 64;  // memcmp goes by vector registers
  while (i + kStep <= limit && std::memcmp(a.data() + i, b.data() + i, kStep) == 0)
    i += kStep;
  while (i < limit && a[i] == b[i])
    ++i;
  return i;
}

}  // namespace

void StackPath::keep_common(std::string_view stack) {
  const std::size_t common = common_prefix(text_, stack);
  const auto is_shared = [&](const Step& step) {
    return step.end < common ||
           (step.end == common && (stack.size() == common || stack[common] == ';'));
  };
  if (stack.empty())
    steps_.clear();  // no frame at all, where any other text has at least one
  while (!steps_.empty() && !is_shared(steps_.back()))
    steps_.pop_back();
  text_.resize(common);
  text_ += stack.substr(common);
}

}  // namespace pe::calltree

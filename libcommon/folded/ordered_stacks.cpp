// SPDX-License-Identifier: MIT
#include "folded/ordered_stacks.h"

#include <algorithm>
#include <utility>

#include "base/characters.h"

namespace pe::folded {

void OrderedStacks::add(const FoldedLine& line) {
  is_ordered_ = is_ordered_ && (entries_.empty() || line.stack >= last_);
  const std::size_t common = common_prefix(last_, line.stack);
  const std::string_view rest = line.stack.substr(common);
  entries_.push_back(
      {.common = common, .rest = texts_.store(rest), .count = line.count, .before = line.before});
  last_.resize(common);
  last_ += rest;
}

void OrderedStacks::put_in_order() {
  StringArena whole;
  std::vector<FoldedLine> lines;
  lines.reserve(entries_.size());
  std::string stack;
  for (const Entry& entry : entries_) {
    stack.resize(entry.common);
    stack += entry.rest;
    lines.push_back({.stack = whole.store(stack), .count = entry.count, .before = entry.before});
  }
  std::ranges::stable_sort(lines, {}, &FoldedLine::stack);
  entries_.clear();
  for (const FoldedLine& line : lines)
    entries_.push_back(
        {.common = 0, .rest = line.stack, .count = line.count, .before = line.before});
  texts_ = std::move(whole);
  is_ordered_ = true;
}

}  // namespace pe::folded

// SPDX-License-Identifier: MIT
#include "folded/ordered_stacks.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/common_prefix.h"

namespace pe::folded {
namespace {

/// Formats the counts as they appear in a line.
std::string counts_text(const FoldedLine& line) {
  std::string text;
  append_folded_line(text, {.stack = {}, .count = line.count, .before = line.before});
  return text;
}

std::string line_text(const FoldedLine& line) {
  return fmt::format("{}{}", line.stack, counts_text(line));
}

/// Compares whole lines: a blank follows the stack.
bool is_line_before(const FoldedLine& a, const FoldedLine& b) {
  const std::size_t common = common_prefix(a.stack, b.stack);
  if (common < std::max(a.stack.size(), b.stack.size())) {
    const auto next = [common](std::string_view stack) {
      return static_cast<unsigned char>(common < stack.size() ? stack[common] : ' ');
    };
    if (next(a.stack) != next(b.stack))
      return next(a.stack) < next(b.stack);
    return line_text(a) < line_text(b);  // a frame continues with a blank
  }
  return counts_text(a) < counts_text(b);
}

bool is_before(const FoldedLine& a, const FoldedLine& b, StackOrder order) {
  return order == StackOrder::kStacks ? a.stack < b.stack : is_line_before(a, b);
}

}  // namespace

void OrderedStacks::add(const FoldedLine& line) {
  last_line_.stack = last_;
  is_ordered_ = is_ordered_ && (entries_.empty() || !is_before(line, last_line_, order_));
  const std::size_t common = common_prefix(last_, line.stack);
  const std::string_view rest = line.stack.substr(common);
  entries_.push_back(
      {.common = common, .rest = texts_.store(rest), .count = line.count, .before = line.before});
  last_.resize(common);
  last_ += rest;
  last_line_ = line;
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
  std::stable_sort(lines.begin(), lines.end(), [this](const FoldedLine& a, const FoldedLine& b) {
    return is_before(a, b, order_);
  });
  entries_.clear();
  for (const FoldedLine& line : lines)
    entries_.push_back(
        {.common = 0, .rest = line.stack, .count = line.count, .before = line.before});
  texts_ = std::move(whole);
  is_ordered_ = true;
}

}  // namespace pe::folded

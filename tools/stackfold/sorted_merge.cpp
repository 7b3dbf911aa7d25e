// SPDX-License-Identifier: MIT
#include "stackfold/sorted_merge.h"

#include <algorithm>
#include <utility>

namespace pe::folded {
namespace {

/// Orders the heap: the heap functions put the greatest element first.
constexpr auto kIsLater = [](const auto* a, const auto* b) {
  return a->line.stack > b->line.stack;
};

}  // namespace

SortedMerge::SortedMerge(std::vector<Input> inputs) {
  for (Input& input : inputs)
    sources_.push_back(std::make_unique<Source>(std::move(input)));
  for (const auto& source : sources_)
    if (advance(*source))
      heap_.push_back(source.get());
  std::make_heap(heap_.begin(), heap_.end(), kIsLater);
}

bool SortedMerge::advance(Source& source) {
  const auto line = source.reader.next();
  if (!line)
    return false;
  source.line = *line;
  source.is_any = true;
  ++totals_.lines;
  (void)totals_.read.add(line->count);
  return true;
}

std::optional<FoldedLine> SortedMerge::next() {
  if (heap_.empty())
    return std::nullopt;
  stack_ = heap_.front()->line.stack;
  Count sum;
  while (!heap_.empty() && heap_.front()->line.stack == stack_) {
    std::pop_heap(heap_.begin(), heap_.end(), kIsLater);
    Source& source = *heap_.back();
    saturated_ = !sum.add(source.line.count) || saturated_;
    if (!advance(source)) {
      heap_.pop_back();
      continue;
    }
    if (source.line.stack < stack_ && out_of_order_++ == 0)
      first_ = source.reader.place();
    std::push_heap(heap_.begin(), heap_.end(), kIsLater);
  }
  ++totals_.stacks;
  (void)totals_.written.add(sum);
  return FoldedLine{.stack = stack_, .count = sum};
}

}  // namespace pe::folded

// SPDX-License-Identifier: MIT
#include "stackfold/merge_sorted.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "base/text.h"
#include "stackfold/strip_names.h"

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

namespace pe::fold {
namespace {

/// Reports problems in the inputs.  False if an input was cut, or has only malformed lines.
bool report_inputs(const folded::SortedMerge& merge, const Io& io) {
  bool is_whole = true;
  merge.visit_inputs([&](const folded::FoldedReader& input, bool is_any) {
    const folded::MalformedLines& malformed = input.malformed();
    if (malformed.count > 0 && is_any)
      io.note(malformed.describe());
    if (malformed.count > 0 && !is_any)
      io.report(malformed.describe());
    if (!input.cut_line().empty())
      io.report(input.cut_line() + ": no newline at the end: truncated, perhaps inside the count");
    if (!input.cut_line().empty() || (malformed.count > 0 && !is_any))
      is_whole = false;
  });
  return is_whole;
}

void write(folded::SortedMerge& merge, Output& out) {
  constexpr std::size_t kBlockBytes = 64UL * 1024;
  std::string block;
  while (const auto line = merge.next()) {
    append_folded_line(block, *line);
    if (block.size() < kBlockBytes)
      continue;
    out.write(block);
    block.clear();
  }
  out.write(block);
  out.flush();
}

}  // namespace

bool merge_sorted(std::vector<Input> inputs, const Options& options, Io& io) {
  folded::SortedMerge merge(std::move(inputs));
  StrippedMerge stripped;
  if (options.strips_names)
    stripped = write_stripped(merge, io.out);
  else
    write(merge, io.out);
  const bool is_whole = report_inputs(merge, io);
  if (merge.saturated() || stripped.saturated)
    io.report("some counts exceed 2^64 and were capped");
  if (merge.out_of_order() > 0)
    io.report(
        fmt::format("--merge-sorted: {} out of order, so stacks may appear twice; first: {}: fold "
                    "each input first",
                    plural(merge.out_of_order(), "line"), merge.first_out_of_order()));
  if (const auto& totals = options.strips_names ? stripped.totals : merge.totals();
      options.with_stats)
    io.report(fmt::format("read {}, a count of {}; wrote {}, a count of {}",
                          plural(totals.lines, "line"), folded::to_text(totals.read),
                          plural(totals.stacks, "stack"), folded::to_text(totals.written)));
  return is_whole && merge.out_of_order() == 0;
}

}  // namespace pe::fold

// SPDX-License-Identifier: MIT
#include "stackfold/merge_sorted.h"

#include <fmt/format.h>

#include <string>
#include <utility>

#include "base/plural.h"
#include "stackfold/sorted_merge.h"
#include "stackfold/strip_names.h"

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

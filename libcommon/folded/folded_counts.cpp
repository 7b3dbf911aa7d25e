// SPDX-License-Identifier: MIT
#include "folded/folded_counts.h"

#include <algorithm>
#include <string>

namespace pe::folded {

void FoldedCounts::add(std::string_view stack, Count count) {
  const auto found = counts_.find(stack);
  if (found == counts_.end())
    counts_.emplace(texts_.store(stack), count);
  else if (!found->second.add(count))
    saturated_ = true;
}

std::vector<FoldedLine> FoldedCounts::sorted() const {
  std::vector<FoldedLine> lines;
  lines.reserve(counts_.size());
  for (const auto& [stack, count] : counts_)
    lines.push_back({.stack = stack, .count = count});
  std::sort(lines.begin(), lines.end(),
            [](const FoldedLine& a, const FoldedLine& b) { return a.stack < b.stack; });
  return lines;
}

void write_folded(const FoldedCounts& counts, io::Output& out) {
  std::string line;
  for (const FoldedLine& folded : counts.sorted()) {
    line.clear();
    append_folded_line(line, folded);
    out.write(line);
  }
}

}  // namespace pe::folded

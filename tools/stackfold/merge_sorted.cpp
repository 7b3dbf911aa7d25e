// SPDX-License-Identifier: MIT
#include "stackfold/merge_sorted.h"

#include <fmt/format.h>

#include <string>
#include <utility>

#include "base/plural.h"
#include "folded/sorted_merge.h"

namespace pe::fold {

bool merge_sorted(std::vector<io::Input> inputs, cli::Io& io) {
  constexpr std::size_t kBlockBytes = 64UL * 1024;
  folded::SortedMerge merge(std::move(inputs));
  std::string block;
  while (const auto line = merge.next()) {
    append_folded_line(block, *line);
    if (block.size() < kBlockBytes)
      continue;
    io.out.write(block);
    block.clear();
  }
  io.out.write(block);
  for (const folded::MalformedLines& malformed : merge.malformed())
    if (malformed.count > 0)
      io.err.write("stackfold: " + malformed.describe() + "\n");
  if (merge.saturated())
    io.err.write("stackfold: some counts are over 2^64 and stay at the largest number\n");
  if (merge.out_of_order() > 0)
    io.err.write(
        fmt::format("stackfold: --merge-sorted: {} out of order, so that stacks can come twice; "
                    "first: {}: fold "
                    "each input first\n",
                    plural(merge.out_of_order(), "line"), merge.first_out_of_order()));
  io.err.flush();
  return merge.out_of_order() == 0;
}

}  // namespace pe::fold

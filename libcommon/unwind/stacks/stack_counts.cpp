// SPDX-License-Identifier: MIT
#include "unwind/stacks/stack_counts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string_view>
#include <vector>

#include "base/plural.h"

namespace pe::unwind {
namespace {

/// Lists the reasons with the most stacks, each with its module, and the number of other stacks.
std::string describe_ends(const StackCounts& counts) {
  struct End {
    std::string module;
    std::string_view reason;
    std::uint64_t stacks;
  };
  std::vector<End> ends;
  ends.reserve(counts.ended.size() + counts.unopened.size());
  for (const auto& [where, count] : counts.ended)
    ends.push_back({where.first, to_string(where.second), count});
  for (const auto& [module, count] : counts.unopened)
    ends.push_back({module, "too many open files (ulimit -n)", count});
  std::stable_sort(ends.begin(), ends.end(),
                   [](const End& a, const End& b) { return a.stacks > b.stacks; });
  constexpr std::size_t kTold = 3;
  std::string text;
  std::uint64_t others = 0;
  for (std::size_t i = 0; i < ends.size(); ++i) {
    if (i < kTold)
      text += fmt::format("; {} ended in {}: {}", ends[i].stacks, ends[i].module, ends[i].reason);
    else
      others += ends[i].stacks;
  }
  if (others > 0)
    text += fmt::format("; {} ended elsewhere", others);
  return text;
}

}  // namespace

std::string describe(const StackCounts& counts) {
  if (counts.stacks == 0 && counts.foreign == 0)
    return {};
  // The share is rounded down: 100 % means all.
  constexpr double kPerMille = 1000;
  const double share = std::floor(kPerMille * static_cast<double>(counts.complete) /
                                  static_cast<double>(std::max<std::uint64_t>(1, counts.stacks)));
  std::string text;
  if (counts.stacks > 0)
    text = fmt::format("{:.1f} % of stacks complete", share / 10);
  if (counts.from_process > 0)
    text += fmt::format("; {} continued in the process's memory", counts.from_process);
  if (counts.from_earlier > 0)
    text += fmt::format("; {} continued as earlier stacks", counts.from_earlier);
  if (counts.by_frame_pointer > 0)
    text += fmt::format("; {} found by frame pointer", plural(counts.by_frame_pointer, "frame"));
  if (counts.by_leaf > 0)
    text += fmt::format("; {} guessed from the top of the stack", plural(counts.by_leaf, "frame"));
  text += describe_ends(counts);
  if (counts.cut > 0)
    text += fmt::format("; {} cut at {} KiB", counts.cut, (counts.cut_bytes + 1023) / 1024);
  if (counts.unread > 0)
    text +=
        fmt::format("; {} not continued: too much memory of the process to read", counts.unread);
  if (counts.foreign > 0)
    text +=
        fmt::format("{}{} of 32-bit programs not walked", text.empty() ? "" : "; ", counts.foreign);
  return text;
}

}  // namespace pe::unwind

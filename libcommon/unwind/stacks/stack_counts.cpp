// SPDX-License-Identifier: MIT
#include "unwind/stacks/stack_counts.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <vector>

#include "base/text.h"

namespace pe::unwind {
namespace {

struct End {
  std::string module;
  std::string_view reason;
  std::uint64_t stacks;
};

/// Returns the reasons, each with its module; those with the most stacks come first.
std::vector<End> sorted_ends(const StackCounts& counts) {
  std::vector<End> ends;
  ends.reserve(counts.ended.size() + counts.unopened.size());
  for (const auto& [where, count] : counts.ended)
    ends.push_back({where.first, to_string(where.second), count});
  for (const auto& [module, count] : counts.unopened)
    ends.push_back({module, "too many open files (ulimit -n)", count});
  std::stable_sort(ends.begin(), ends.end(),
                   [](const End& a, const End& b) { return a.stacks > b.stacks; });
  return ends;
}

/// Adds parts of a description, separated by "; ".
class Parts {
 public:
  void add(const std::string& part) { text_ += (text_.empty() ? "" : "; ") + part; }
  [[nodiscard]] std::string text() const { return text_; }

 private:
  std::string text_;
};

void add_ends(Parts& parts, const StackCounts& counts) {
  constexpr std::size_t kTold = 3;
  const auto ends = sorted_ends(counts);
  std::uint64_t others = 0;
  for (std::size_t i = 0; i < ends.size(); ++i) {
    if (i < kTold)
      parts.add(fmt::format("{} ended in {}: {}", ends[i].stacks, ends[i].module, ends[i].reason));
    else
      others += ends[i].stacks;
  }
  if (others > 0)
    parts.add(fmt::format("{} ended elsewhere", others));
}

}  // namespace

std::uint64_t cut_kib(const StackCounts& counts) {
  constexpr std::uint64_t kKibibyte = 1024;
  return (counts.cut_bytes + kKibibyte - 1) / kKibibyte;
}

std::string describe_share(const StackCounts& counts) {
  if (counts.stacks == 0)
    return {};
  return share_rounded_down(static_cast<double>(counts.complete),
                            static_cast<double>(counts.stacks)) +
         " of stacks complete";
}

std::string describe_rest(const StackCounts& counts) {
  Parts parts;
  if (counts.from_process > 0)
    parts.add(fmt::format("{} continued in the process's memory", counts.from_process));
  if (counts.from_earlier > 0)
    parts.add(fmt::format("{} continued as earlier stacks", counts.from_earlier));
  if (counts.by_frame_pointer > 0)
    parts.add(plural(counts.by_frame_pointer, "frame") + " found by frame pointer");
  if (counts.by_leaf > 0)
    parts.add(plural(counts.by_leaf, "frame") + " guessed from the top of the stack");
  add_ends(parts, counts);
  if (counts.cut > 0)
    parts.add(fmt::format("{} cut at {} KiB", counts.cut, cut_kib(counts)));
  if (counts.unread > 0)
    parts.add(
        fmt::format("{} not continued: too much memory of the process to read", counts.unread));
  if (counts.foreign > 0)
    parts.add(fmt::format("{} of 32-bit programs not walked", counts.foreign));
  return parts.text();
}

std::string most_common_end(const StackCounts& counts) {
  const auto ends = sorted_ends(counts);
  if (!ends.empty() && ends.front().stacks >= counts.cut)
    return fmt::format("ended in {}: {}", ends.front().module, ends.front().reason);
  return counts.cut == 0 ? "" : fmt::format("were cut at {} KiB", cut_kib(counts));
}

std::string describe(const StackCounts& counts) {
  Parts parts;
  for (const std::string& part : {describe_share(counts), describe_rest(counts)})
    if (!part.empty())
      parts.add(part);
  return parts.text();
}

}  // namespace pe::unwind

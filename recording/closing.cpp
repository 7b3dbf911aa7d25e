// SPDX-License-Identifier: MIT
#include "recording/closing.h"

#include <fmt/format.h>

#include "base/text.h"

namespace pe::recording {

std::string describe_quality(std::uint64_t lost, const unwind::StackCounts& counts) {
  const std::string share = unwind::describe_share(counts);
  return fmt::format("{} lost{}{}", lost, share.empty() ? "" : ", ", share);
}

void add_stacks(Closing& closing, const unwind::StackCounts& counts, const StackFixes& fixes) {
  // Some threads always start or end within functions that no table describes.
  constexpr std::uint64_t kUsualPercent = 5;
  const std::uint64_t incomplete = counts.stacks - counts.complete;
  if (incomplete * 100 > counts.stacks * kUsualPercent) {
    const std::string end = unwind::most_common_end(counts);
    closing.doubt(
        fmt::format("{:.1f} % of stacks are incomplete{}{}",
                    100 * static_cast<double>(incomplete) / static_cast<double>(counts.stacks),
                    end.empty() ? "" : "; most ", end),
        "see HOW STACKS END in pe-record(1)");
  }
  if (counts.cut * 100 > counts.stacks)
    closing.doubt(
        fmt::format("{} cut at {} KiB", plural(counts.cut, "stack"), unwind::cut_kib(counts)),
        fixes.if_cut);
  if (!counts.unopened.empty()) {
    std::uint64_t unopened = 0;
    for (const auto& [module, count] : counts.unopened)
      unopened += count;
    closing.doubt(
        fmt::format("{} ended where a file could not be opened", plural(unopened, "stack")),
        "raise ulimit -n");
  }
  if (counts.foreign > 0)
    closing.doubt(plural(counts.foreign, "stack") + " of 32-bit programs not walked",
                  fixes.if_foreign);
  closing.detail(unwind::describe_rest(counts));
}

}  // namespace pe::recording

// SPDX-License-Identifier: MIT
#include "pe-record/closing_line.h"

#include <fmt/format.h>

#include "base/plural.h"

namespace pe::recorder {

std::string closing_line(const record::Passed& passed, const record::RecordedStream& stream,
                         const record::OwnCost& cost) {
  std::string line =
      fmt::format("{}, {} lost, {} seen; {}", plural(passed.samples, "sample"), passed.lost.count(),
                  plural(passed.threads.size(), "thread"), cost.describe());
  if (passed.throttled > 0)
    line += fmt::format("; throttled {}", plural(passed.throttled, "time"));
  if (const auto* unwinder = stream.unwinder())
    if (const std::string stacks = unwind::describe(unwinder->counts()); !stacks.empty())
      line += "; " + stacks;
  return line;
}

}  // namespace pe::recorder

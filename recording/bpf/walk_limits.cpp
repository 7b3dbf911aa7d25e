// SPDX-License-Identifier: MIT
#include "recording/bpf/walk_limits.h"

#include <fmt/format.h>

#include <string>

#include "base/text.h"

namespace pe::recording {
namespace {

/// Describes the limits at which walks ended, except the budget.
std::string other_limits(const unwind::LimitedWalks& walks) {
  const std::uint64_t late = walks.ended_by[unwind::kLimitOfTime];
  const std::uint64_t unreadable = walks.ended_by[unwind::kLimitOfFaults];
  std::string text;
  if (late > 0)
    text = fmt::format("{} took too long", late);
  if (unreadable > 0)
    text += fmt::format("{}{} kept hitting unreadable memory", late > 0 ? ", " : "", unreadable);
  return text;
}

}  // namespace

void describe_limits(const unwind::LimitedWalks& walks, std::string_view for_less,
                     Closing& closing) {
  constexpr double kMillisecondNs = 1e6;
  if (walks.longest_ns > 0)
    closing.detail(fmt::format("the longest stack walk took {:.2f} ms",
                               static_cast<double>(walks.longest_ns) / kMillisecondNs));
  const std::string process =
      fmt::format("most in process {}, {}", walks.process, walks.process_name);
  if (const std::uint64_t cut = walks.ended_by[unwind::kLimitOfBudget]; cut > 0)
    closing.doubt(fmt::format("{} cut after 0.1 ms, because deep ones used up 25 % of a CPU ({})",
                              plural(cut, "stack"), process),
                  for_less);
  if (const std::string others = other_limits(walks); !others.empty())
    closing.doubt(fmt::format("stacks cut short to avoid blocking a CPU: {} ({})", others, process),
                  "see HOW STACKS END in pe-record(1)");
}

void describe_memory(const unwind::KernelMemory& memory, Closing& closing) {
  constexpr double kMebibyte = 1 << 20;
  std::string text =
      fmt::format("{:.1f} MiB of the kernel's memory",
                  static_cast<double>(memory.map_bytes + memory.thread_bytes) / kMebibyte);
  if (memory.threads > 0)
    text +=
        fmt::format(", {:.1f} of them for {}", static_cast<double>(memory.thread_bytes) / kMebibyte,
                    plural(memory.threads, "thread"));
  closing.detail(text);
  if (memory.renewals > 0)
    closing.detail(fmt::format("the kernel's tables of stacks and waits were full and renewed {}",
                               plural(memory.renewals, "time")));
}

void describe_thinning(const ThinnedCounts& counts, Closing& closing) {
  closing.figure("thinned", counts.thinned);
  if (counts.thinned == 0)
    return;
  const std::string alone =
      counts.alone == 0
          ? ""
          : fmt::format("; {} have no callers, because their thread had no next one", counts.alone);
  closing.doubt(fmt::format("{} thinned: walking their stacks would take more than {} % of a CPU, "
                            "so they have the next stack of their thread{}",
                            plural(counts.thinned, "sample"), counts.budget_percent, alone),
                "raise --walk-budget, or lower --freq");
}

}  // namespace pe::recording

// SPDX-License-Identifier: MIT
#include "offcpu/bpf/kernel_stack_counts.h"

#include <fmt/format.h>

#include <bit>
#include <string_view>

#include "base/plural.h"
#include "unwind/walk/frame.h"

namespace pe::offcpu {
namespace {

constexpr double kNanosecond = 1e-9;

std::string_view why(std::size_t stop) {
  switch (stop) {
    case unwind::kStopNotReadable:
      return "the stack is not in memory";
    case unwind::kStopUnsupported:
      return "unwind rules that the kernel cannot follow";
    case unwind::kStopUnknownProcess:
      return "the mappings were not known";
    case unwind::kStopStaleMappings:
      return "the program had just started";
    case unwind::kStopChanged:
      return "mappings changed meanwhile";
    case unwind::kStopUnmapped:
      return "outside all known mappings";
    case unwind::kStopNot64Bit:
      return "32-bit programs";
    case unwind::kStopOutOfTime:
      return "the walk would take too long";
    default:
      return unwind::to_string(static_cast<unwind::Stop>(stop));
  }
}

}  // namespace

void KernelStackCounts::add(const unwind::StackOfKernel& stack, std::uint64_t times) {
  stacks_ += times;
  if (stack.stop == unwind::kStopEndOfStack)
    complete_ += times;
  else
    incomplete_[stack.stop] += times;
  for (const std::uint64_t bits : stack.frames) {
    const auto source = std::bit_cast<unwind::Frame>(bits).source();
    by_frame_pointer_ += source == unwind::FrameSource::kFramePointer ? times : 0;
    by_leaf_ += source == unwind::FrameSource::kLeaf ? times : 0;
  }
}

unwind::StackCounts KernelStackCounts::with(const unwind::StackCounts& others) const {
  unwind::StackCounts all = others;
  all.stacks += stacks_;
  all.complete += complete_;
  all.by_frame_pointer += by_frame_pointer_;
  all.by_leaf += by_leaf_;
  return all;
}

std::vector<std::string> KernelStackCounts::ends() const {
  std::vector<std::string> ends;
  for (std::size_t stop = 0; stop < incomplete_.size(); ++stop)
    if (incomplete_[stop] > 0)
      ends.push_back(fmt::format("{} ended: {}", incomplete_[stop], why(stop)));
  return ends;
}

void add_losses(const unwind::Counts& counts, Closing& closing) {
  constexpr std::string_view kFewer = "record fewer threads, or for a shorter time";
  constexpr std::string_view kFewerProcesses = "record fewer processes, or use --all";
  if (counts.sums_full > 0)
    closing.doubt(fmt::format("{} had no room in the kernel's map, {:.3f} s",
                              plural(counts.sums_full, "wait"),
                              static_cast<double>(counts.sums_full_ns) * kNanosecond),
                  kFewer);
  if (counts.missed > 0)
    closing.detail(fmt::format("{} ended unseen, {:.3f} s were calculated",
                               plural(counts.missed, "wait"),
                               static_cast<double>(counts.missed_ns) * kNanosecond));
  const auto add = [&closing](std::uint64_t count, std::string_view what, std::string_view problem,
                              std::string_view fix) {
    if (count > 0)
      closing.doubt(fmt::format("{} {}", plural(count, what), problem), fix);
  };
  add(counts.no_storage, "wait", "of threads that had no room in the kernel", kFewer);
  add(counts.stacks_full, "stack", "had no room in the kernel's map", kFewer);
  add(counts.ring_full, "stack", "had no room in the ring from which offcpu walks them",
      "use --engine perf");
  add(counts.execs_full, "process", "could not be followed into the programs that they execute",
      kFewerProcesses);
  add(counts.targets_full, "process", "could not be followed", kFewerProcesses);
}

}  // namespace pe::offcpu

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
      return "rules that the kernel cannot follow";
    case unwind::kStopUnknownProcess:
      return "what is mapped was not known";
    case unwind::kStopStaleMappings:
      return "the program was too new";
    case unwind::kStopChanged:
      return "mappings changed meanwhile";
    case unwind::kStopUnmapped:
      return "in no mapping that was known";
    case unwind::kStopNot64Bit:
      return "32-bit programs";
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

std::string KernelStackCounts::describe(const unwind::StackCounts& others) const {
  unwind::StackCounts all = others;
  all.stacks += stacks_;
  all.complete += complete_;
  all.by_frame_pointer += by_frame_pointer_;
  all.by_leaf += by_leaf_;
  std::string text = unwind::describe(all);
  for (std::size_t stop = 0; stop < incomplete_.size(); ++stop)
    if (incomplete_[stop] > 0)
      text += fmt::format("; {} ended: {}", incomplete_[stop], why(stop));
  return text;
}

std::string describe_losses(const unwind::Counts& counts) {
  std::string text;
  const auto tell = [&text](std::uint64_t count, std::string_view what, std::string_view problem) {
    if (count > 0)
      text += fmt::format("; {} {}", plural(count, what), problem);
  };
  if (counts.sums_full > 0)
    text += fmt::format("; {} without room in the kernel's map, {:.3f} s", counts.sums_full,
                        static_cast<double>(counts.sums_full_ns) * kNanosecond);
  if (counts.missed > 0)
    text += fmt::format("; {} ended unseen, {:.3f} s worked out", counts.missed,
                        static_cast<double>(counts.missed_ns) * kNanosecond);
  if (counts.no_storage > 0)
    text += fmt::format("; {} of threads without room in the kernel", counts.no_storage);
  tell(counts.stacks_full, "stack", "had no room in the kernel's map");
  tell(counts.ring_full, "stack", "could not be handed on to be walked");
  tell(counts.execs_full, "process", "too many to follow what they execute");
  tell(counts.targets_full, "process", "too many to be followed");
  return text;
}

}  // namespace pe::offcpu

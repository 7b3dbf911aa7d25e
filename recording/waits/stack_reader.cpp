// SPDX-License-Identifier: MIT
#include "recording/waits/stack_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <string_view>
#include <utility>

#include "base/text.h"
#include "recording/stream/synthesize.h"
#include "unwind/walk/frame.h"

namespace pe::waits {
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

void add_losses(const unwind::Counts& counts, bool has_perf, Closing& closing) {
  constexpr std::string_view kFewer = "record fewer threads";
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
  const std::string_view slower = has_perf ? "use --engine perf" : "record fewer threads";
  add(counts.ring_full, "stack", "had no room in the ring from which they are walked", slower);
  add(counts.commands_full, "command line", "had no room in the same ring", slower);
  add(counts.samples_full, "CPU sample", "had no room in the same ring", "lower --freq");
  add(counts.execs_full, "process", "could not be followed into the programs that they execute",
      kFewerProcesses);
  add(counts.targets_full, "process", "could not be followed", kFewerProcesses);
}

const languages::ScriptStack& ScriptStacks::named(std::uint32_t pid,
                                                  const languages::ScriptFrames& frames,
                                                  std::uint64_t time_ns) {
  time_ns = std::max(time_ns, written_until_ns_);
  recording::Synthesizer synthesizer(
      layout_, [&](const stream::Record& record) { on_function_(time_ns, record); });
  synthesizer.set_time(time_ns);
  return reader_.name(pid, frames,
                      [&](std::uint32_t number, const stream::ScriptFunction& function) {
                        synthesizer.script(static_cast<pid_t>(pid), number, function);
                      });
}

void ScriptStacks::merge(std::uint32_t pid, const languages::ScriptFrames& frames,
                         std::uint64_t time_ns, Stack& into) {
  if (frames.frames.empty())
    return;
  const languages::ScriptStack& script = named(pid, frames, time_ns);
  if (script.empty())
    return;
  const bool is_complete = (into.misc & stream::kMiscComplete) != 0;
  const auto merged = merger_.merge(into.chain, is_complete, script);
  into.chain.assign(merged.begin(), merged.end());
  if (script.is_complete)
    return;
  merger_.count_cut();
  if (is_complete)
    into.misc ^= stream::kMiscWalked;
}

void ScriptStacks::describe(Closing& closing) const {
  reader_.describe(closing);
  merger_.describe(closing);
  publisher_.describe(closing);
}

std::vector<WokenBy> StackReader::wakers(std::uint32_t number, std::uint64_t time_ns,
                                         std::uint64_t waits, const Walked& walked) {
  std::vector<WokenBy> all;
  for (const unwind::Waker& each : object_.wakers(number)) {
    all.push_back(waker(each, time_ns, waits, walked ? walked(all.size(), each) : nullptr));
    if (all.back().pid == 0)  // the kernel has noted the wakers of the thread that it interrupted
      break;
  }
  return all;
}

WokenBy StackReader::waker(const unwind::Waker& waker, std::uint64_t time_ns, std::uint64_t waits,
                           const Stack* walked) {
  WokenBy by{waker.tgid, waker.tid};
  std::vector<std::uint64_t> chain;
  const bool is_interrupt =
      chains_.add_waking_kernel_part(object_.stack(waker.kernel_stack), chain);
  if (is_user_only_)
    chain.clear();
  if (is_interrupt)
    by.pid = by.tid = 0;
  if (by.pid != 0 && walked != nullptr) {
    by.stack = *walked;
    by.stack.chain = std::move(chain);
    by.stack.chain.insert(by.stack.chain.end(), walked->chain.begin(), walked->chain.end());
    return by;
  }
  if (by.pid != 0)
    count(waker.user_stack, waits);
  by.stack = with_user_part(std::move(chain), by.pid,
                            object_.stack(by.pid == 0 ? 0 : waker.user_stack), time_ns);
  return by;
}

void StackReader::count(std::uint32_t user_stack, std::uint64_t times) {
  if (user_stack != 0)
    counts_.add(object_.stack(user_stack), times);
}

Stack StackReader::stack_of(const unwind::Sample& sample) {
  std::vector<std::uint64_t> chain;
  if (!sample.kernel_stack.frames.empty())
    chain.push_back(PERF_CONTEXT_KERNEL);
  chain.insert(chain.end(), sample.kernel_stack.frames.begin(), sample.kernel_stack.frames.end());
  if (!sample.stack.frames.empty())
    counts_.add(sample.stack, 1);
  const unwind::SampleRecord& record = sample.record;
  Stack stack = with_user_part(std::move(chain), record.tgid, sample.stack, record.time_ns);
  stack.ip = record.ip;
  stack.cpu = record.cpu;
  return stack;
}

Stack StackReader::stack_of(const unwind::SumKey& key, std::uint64_t time_ns) {
  std::vector<std::uint64_t> chain;
  chains_.add_kernel_part(object_.stack(key.kernel_stack), chain);
  return with_user_part(std::move(chain), key.tgid, object_.stack(key.user_stack), time_ns);
}

Stack StackReader::with_user_part(std::vector<std::uint64_t> kernel_part, std::uint32_t pid,
                                  const unwind::StackOfKernel& user_part, std::uint64_t time_ns) {
  Stack stack{.chain = std::move(kernel_part)};
  stack.misc = stack.chain.empty() ? PERF_RECORD_MISC_USER : PERF_RECORD_MISC_KERNEL;
  if (!user_part.frames.empty()) {
    ChainWriter::add_user_part(user_part, stack.chain);
    stack.misc |= stream::misc_of_walk(user_part.stop == unwind::kStopEndOfStack);
    scripts_.merge(pid, ScriptStacks::frames_of(user_part), time_ns, stack);
  }
  stack.ip = stack.chain.empty() ? 0 : stack.chain[1];
  return stack;
}

}  // namespace pe::waits

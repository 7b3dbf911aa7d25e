// SPDX-License-Identifier: MIT
#include "offcpu/bpf/stack_reader.h"

#include <utility>

namespace pe::offcpu {

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
  by.stack = with_user_part(std::move(chain), by.pid, by.pid == 0 ? 0 : waker.user_stack, time_ns);
  return by;
}

void StackReader::count(std::uint32_t user_stack, std::uint64_t times) {
  if (user_stack != 0)
    counts_.add(object_.stack(user_stack), times);
}

Stack StackReader::stack_of(const unwind::SumKey& key, std::uint64_t time_ns) {
  std::vector<std::uint64_t> chain;
  chains_.add_kernel_part(object_.stack(key.kernel_stack), chain);
  return with_user_part(std::move(chain), key.tgid, key.user_stack, time_ns);
}

Stack StackReader::with_user_part(std::vector<std::uint64_t> kernel_part, std::uint32_t pid,
                                  std::uint32_t user_stack, std::uint64_t time_ns) {
  Stack stack{.chain = std::move(kernel_part)};
  stack.misc = stack.chain.empty() ? PERF_RECORD_MISC_USER : PERF_RECORD_MISC_KERNEL;
  if (user_stack != 0) {
    const unwind::StackOfKernel user_part = object_.stack(user_stack);
    ChainWriter::add_user_part(user_part, stack.chain);
    stack.misc |= stream::misc_of_walk(user_part.stop == unwind::kStopEndOfStack);
    scripts_.merge(pid, user_part, time_ns, stack);
  }
  stack.ip = stack.chain.empty() ? 0 : stack.chain[1];
  return stack;
}

}  // namespace pe::offcpu

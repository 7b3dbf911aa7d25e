// SPDX-License-Identifier: MIT
#include "recording/signal/core/take_sample.h"

#include <pthread.h>

#include <algorithm>
#include <array>
#include <bit>
#include <csignal>

#include "recording/inprocess/atomics.h"
#include "recording/inprocess/runtime/own_memory.h"
#include "recording/inprocess/runtime/timers.h"
#include "recording/signal/core/ring_writer.h"

namespace pe::inprocess {
namespace {

void copy_registers(const ucontext_t& context, SampleHead& head) noexcept {
  constexpr std::array<int, kRegisters> kByKernelNumber{
      REG_RAX, REG_RBX, REG_RCX, REG_RDX, REG_RSI, REG_RDI, REG_RBP, REG_RSP, REG_RIP,
      REG_R8,  REG_R9,  REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15};
  static_assert(std::popcount(stream::kKnownRegisters) == kRegisters);
  head.abi = PERF_SAMPLE_REGS_ABI_64;
  for (std::size_t i = 0; i < kRegisters; ++i)
    head.registers[i] = static_cast<std::uint64_t>(context.uc_mcontext.gregs[kByKernelNumber[i]]);
  head.ip = head.registers[kIpRegister];
}

/// Returns the bounds of the stack in use: the thread's own, or its alternate one.
StackBounds bounds_of(const StackBounds& own, const stack_t& alternate, std::uint64_t sp) noexcept {
  if (own.contains(sp))
    return own;
  const auto low = reinterpret_cast<std::uint64_t>(alternate.ss_sp);
  const StackBounds other{low, low + alternate.ss_size};
  return (alternate.ss_flags & SS_DISABLE) == 0 && other.contains(sp) ? other : StackBounds{};
}

/// Returns the maximum size of a stack of which only the start is known.  pthread_self(3) points to
/// the C library's description of the thread, at the end of the thread's stack.
std::uint64_t unknown_bytes(std::uint64_t sp, std::uint64_t most) noexcept {
  const auto self = static_cast<std::uint64_t>(::pthread_self());
  return self > sp ? std::min(most, self - sp) : most;
}

/// Copies a stack, or its start.  Returns false if the kernel does not copy for us and the stack is
/// not the thread's own: loads could fault.
bool copy_stack(const SampledThread& sampled, std::uint64_t sp, std::uint64_t bytes,
                bool is_known) noexcept {
  RingWriter& ring = sampled.ring;
  std::int64_t copied = -1;
  if (sampled.can_copy) {
    // Beyond an unknown end there may be a file, or memory that a thread must first supply.
    const std::uint64_t readable = is_known ? bytes : resident_bytes(sp, bytes);
    copied = copy_own_memory(sp, ring.room_for_stack(readable));
  }
  if (copied >= 0)
    ring.add_written(static_cast<std::size_t>(copied));
  else if (sampled.stack.contains(sp))
    ring.add_stack(reinterpret_cast<const void*>(sp), bytes);  // NOLINT
  return ring.stack_bytes() != 0 || bytes == 0;
}

}  // namespace

void take_sample(const SampledThread& sampled, std::uint32_t weight,
                 const ucontext_t& context) noexcept {
  Thread& thread = sampled.thread;
  SampleHead head;
  head.pid = sampled.pid;
  head.tid = thread.tid;
  head.time_ns = std::max(last_tick_ns(), thread.start_ns);  // not before its thread's start
  head.period_ns = weight * sampled.settings.period_ns();
  copy_registers(context, head);
  const std::uint64_t sp = head.registers[kSpRegister];
  const StackBounds bounds = bounds_of(sampled.stack, context.uc_stack, sp);
  const bool is_known = bounds.end != 0;
  const std::uint64_t most = sampled.settings.stack_bytes;
  const std::uint64_t wanted = is_known ? std::min(most, bounds.end - sp) : unknown_bytes(sp, most);
  RingWriter& ring = sampled.ring;
  if (!ring.has_room(wanted)) {
    count_own(thread.lost_samples, std::uint64_t{1});
    count_own(thread.lost_weight, std::uint64_t{weight});
    return;
  }
  const bool has_stack = copy_stack(sampled, sp, wanted, is_known);
  const std::uint64_t copied = ring.stack_bytes();
  const bool is_cut = is_known ? copied < bounds.end - sp : copied == most || !has_stack;
  count_own(thread.samples, std::uint64_t{1});
  count_own(thread.weight, std::uint64_t{weight});
  if (is_cut)
    count_own(thread.cut_samples, std::uint64_t{1});
  if (!has_stack || sampled.lacks_script)
    count_own(thread.uncopied_samples, std::uint64_t{1});
  // A short copy does not show where a stack of unknown bounds ends.
  ring.finish(head, has_stack && (is_cut || copied < wanted));
}

}  // namespace pe::inprocess

// SPDX-License-Identifier: MIT
#include "recording/ptrace/thread_stopper.h"

#include <sys/ptrace.h>
#include <sys/user.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <ctime>
#include <span>

#include "base/clock.h"
#include "recording/ptrace/frame_chain.h"
#include "recording/sample_source.h"

namespace pe::recording {
namespace {

/// The buffer of copies starts with this size, so that a few deep stacks need not wait for it.
constexpr std::size_t kUsualBytes = 262'144;
/// Deeper stacks are cut.
constexpr std::uint64_t kMostStackBytes = 8UL * 1024 * 1024;

/// Returns false if the thread has been killed meanwhile.
bool read_registers(pid_t tid, CopiedSample& sample, std::uint64_t& thread_pointer) {
#if defined(__x86_64__)
  user_regs_struct r{};
  if (::ptrace(PTRACE_GETREGS, tid, nullptr, &r) != 0)
    return false;
  constexpr unsigned long kUserCode32 = 0x23;  // arch/x86/include/asm/segment.h, __USER32_CS
  sample.is_64_bit = r.cs != kUserCode32;
  sample.registers = {r.rax, r.rdx, r.rcx, r.rbx, r.rsi, r.rdi, r.rbp, r.rsp, r.r8,
                      r.r9,  r.r10, r.r11, r.r12, r.r13, r.r14, r.r15, r.rip};
  thread_pointer = r.fs_base;
  return true;
#else
  (void)tid;
  (void)sample;
  (void)thread_pointer;
  return false;
#endif
}

/// Returns whether `sp` is in the stack, or in memory that the stack may have grown into since.
bool is_within(const unwind::MemoryRange& stack, std::uint64_t sp) {
  constexpr std::uint64_t kGrown = 2UL * 1024 * 1024;
  return sp < stack.end && sp >= stack.start - std::min(stack.start, kGrown);
}

/// Whether a mapping is a thread's own stack.  C libraries keep the thread's control block at its
/// end, and the kernel puts the first thread's at the top of the address space.  Another mapping is
/// a heap with the stacks of goroutines or coroutines, and its end says nothing about them.  (Go's
/// heap has control blocks, too, but seldom at its end.)
bool is_own_stack(const unwind::MemoryRange& mapping, bool is_first, std::uint64_t thread_pointer) {
  constexpr std::uint64_t kTop = 0x7ff0'0000'0000;  // minus 32 GiB and more; arch/x86/mm/mmap.c
  constexpr std::uint64_t kControlBytes = 16'384;
  return (thread_pointer < mapping.end && mapping.end - thread_pointer <= kControlBytes) ||
         (is_first && mapping.end > kTop);
}

constexpr std::size_t kFramePointer = 6;
constexpr std::size_t kStackPointer = 7;
constexpr std::size_t kInstruction = 16;

}  // namespace

ThreadStopper::ThreadStopper(const Request& request, languages::ScriptReader& scripts,
                             Budget& budget)
    : request_(request),
      scripts_(scripts),
      budget_(budget),
      own_files_(::getpid(), ::gettid()),
      copy_(kUsualBytes) {}

void ThreadStopper::wait_until(std::uint64_t time_ns) {
  const std::uint64_t now_ns = monotonic_ns();
  const std::uint64_t left_ns = time_ns > now_ns ? time_ns - now_ns : 0;
  const timespec left = timespec_of(left_ns);
  sigset_t ended;
  ::sigemptyset(&ended);
  ::sigaddset(&ended, SIGCHLD);
  own_waited_ns_ = own_files_.times().value_or(stream::ThreadTimes{}).waited_ns;
  ::sigtimedwait(&ended, nullptr, &left);
  woken_ns_ = monotonic_ns();
}

bool ThreadStopper::preempt(TracedThread& thread) {
  constexpr int kTries = 2;  // the thread may be moved while we migrate
  for (int i = 0; i < kTries; ++i) {
    thread.arrived_ns = CpuPlace::is_on(thread.cpu) ? woken_ns_ : monotonic_ns();
    if (!place_.stand_on(thread.cpu))
      return true;
    const auto seen = thread.files.state();
    if (!seen || seen->state != 'R')
      return false;
    if (seen->cpu == thread.cpu)
      return true;
    thread.cpu = seen->cpu;
  }
  return true;
}

std::uint64_t ThreadStopper::stop_began_ns() const {
  const std::uint64_t waited_ns = own_files_.times().value_or(stream::ThreadTimes{}).waited_ns;
  return woken_ns_ - std::min(woken_ns_, waited_ns - std::min(waited_ns, own_waited_ns_));
}

std::optional<CopiedSample> ThreadStopper::copy(const TracedThread& thread) {
  CopiedSample sample{.pid = thread.pid, .tid = thread.tid, .cpu = thread.cpu};
  const bool is_alive = read_registers(thread.tid, sample, thread_pointer_);
  if (is_alive && sample.is_64_bit) {
    sample.stack = Bytes(copy_).first(copy_stack(thread, sample));
    if (auto* const script = scripts_.process(static_cast<std::uint32_t>(thread.pid)))
      sample.script = &script->read_stack(
          thread.tid, {.thread_pointer = thread_pointer_, .is_first = thread.tid == thread.pid});
  }
  resume(thread.tid, 0);
  sample.time_ns = monotonic_ns();
  return is_alive ? std::optional(sample) : std::nullopt;
}

/// Copies up to the stack's end, if that is known.  Otherwise copies kMaxStackBytes, and more as
/// far as frame pointers lead.  Returns the number of bytes.
std::size_t ThreadStopper::copy_stack(const TracedThread& thread, const CopiedSample& sample) {
  const std::uint64_t sp = sample.registers[kStackPointer];
  const bool is_known = is_within(thread.stack, sp);
  const bool may_continue = !request_.stack_bytes && request_.may_continue;
  std::uint64_t wanted = request_.stack_bytes.value_or(kMaxStackBytes);
  if (is_known && may_continue)
    wanted = std::min(thread.stack.end - sp, kMostStackBytes);
  const std::size_t first = std::min(wanted, copy_.size());
  const std::size_t copied = scripts_.memory().read(thread.tid, sp, std::span(copy_).first(first));
  is_short_ = false;
  return is_known || !may_continue || copied < first ? copied : copy_frames(thread, sample, copied);
}

/// Spends `bytes` of a process's budget for stacks, or returns false if it is used up.
bool ThreadStopper::may_read_more(std::uint32_t pid, double bytes, std::uint64_t now_ns) {
  const bool may_spend = budget_.may_spend(pid, Resource::kStackBytes, bytes, now_ns);
  if (may_spend)
    budget_.spend(pid, Resource::kStackBytes, bytes, now_ns);
  return may_spend;
}

/// Continues a copy of `copied` bytes as far as the chain of frame pointers leads.  Returns the
/// number of bytes in all.
std::size_t ThreadStopper::copy_frames(const TracedThread& thread, const CopiedSample& sample,
                                       std::size_t copied) {
  constexpr std::size_t kLeast = 16'384;  // a read of that costs little more than one of a page
  const auto pid = static_cast<std::uint32_t>(thread.pid);
  const std::uint64_t sp = sample.registers[kStackPointer];
  FrameChain chain(sp, sample.registers[kFramePointer]);
  while (const std::size_t missing = chain.missing(Bytes(copy_).first(copied))) {
    const std::size_t wanted = std::max(missing, kLeast);
    is_short_ = copied + wanted > copy_.size();
    if (is_short_)
      break;
    const std::uint64_t now_ns = monotonic_ns();
    if (!may_read_more(pid, static_cast<double>(wanted), now_ns)) {
      budget_.count_loss(pid, Resource::kStackBytes, now_ns);
      break;
    }
    const std::size_t read =
        scripts_.memory().read(thread.tid, sp + copied, std::span(copy_).subspan(copied, wanted));
    copied += read;
    if (read < wanted)
      break;
  }
  return copied;
}

void ThreadStopper::look_up_stack(TracedThread& thread, const CopiedSample& sample) {
  if (sample.stack.size() < kMaxStackBytes || request_.stack_bytes || !request_.may_continue)
    return;
  const std::uint64_t sp = sample.registers[kStackPointer];
  constexpr std::uint64_t kBetweenNs = 20'000'000;  // for threads that alternate between stacks
  const std::uint64_t now_ns = monotonic_ns();
  const bool is_known = is_within(thread.stack, sp);
  if (!is_known && now_ns - thread.stack_read_ns > kBetweenNs) {
    const auto mapping = mapped_.at(static_cast<std::uint32_t>(thread.pid), sp);
    if (is_own_stack(mapping, thread.tid == thread.pid, thread_pointer_))
      thread.stack = mapping;
    thread.stack_read_ns = now_ns;
  }
  // Grows the buffer here, because first access to new memory is slow, and no thread is stopped
  // now.
  const std::uint64_t deep =
      is_short_ ? 2 * copy_.size() : thread.stack.end - std::min(thread.stack.end, sp);
  if (copy_.size() < deep)
    copy_.resize(std::min(2 * deep, kMostStackBytes));
}

bool ThreadStopper::is_unchanged(const TracedThread& thread) {
  const auto at = thread.last ? stream::blocked_at(thread.pid, thread.tid) : std::nullopt;
  if (!at || at->sp != thread.last->sample.registers[kStackPointer] ||
      at->ip != thread.last->sample.registers[kInstruction])
    return false;
  const std::vector<std::byte>& before = thread.last->stack;
  if (copy_.size() < before.size())
    return false;
  const auto pid = static_cast<std::uint32_t>(thread.pid);
  const auto amount = static_cast<double>(before.size());
  if (const std::uint64_t now_ns = monotonic_ns();
      before.size() > kMaxStackBytes && !may_read_more(pid, amount, now_ns))
    return false;
  const auto now = std::span(copy_).first(before.size());
  return scripts_.memory().read(thread.tid, at->sp, now) == before.size() &&
         std::equal(now.begin(), now.end(), before.begin());
}

}  // namespace pe::recording

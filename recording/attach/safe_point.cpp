// SPDX-License-Identifier: MIT
#include "recording/attach/safe_point.h"

#include <sys/syscall.h>

#include <algorithm>
#include <array>
#include <optional>

#include "unwind/architecture.h"
#include "unwind/stacks/sample_unwinder.h"
#include "unwind/walk/stack_view.h"

namespace pe::recording {
namespace {

using Owner = ProcessImage::Owner;

/// Calls of a thread that has nothing to do.  Most C library functions that make them hold no lock.
constexpr std::array<std::uint64_t, 21> kWaits = {
    SYS_read,    SYS_readv,        SYS_recvfrom,       SYS_recvmsg, SYS_recvmmsg,    SYS_accept,
    SYS_accept4, SYS_poll,         SYS_ppoll,          SYS_select,  SYS_pselect6,    SYS_epoll_wait,
    SYS_wait4,   SYS_waitid,       SYS_nanosleep,      SYS_pause,   SYS_epoll_pwait, SYS_write,
    SYS_connect, SYS_epoll_pwait2, SYS_clock_nanosleep};

/// Functions that wait for other threads, and hold no lock of the C library meanwhile.
constexpr std::array<std::string_view, 14> kWaitFunctions = {
    "pthread_cond_wait",      "pthread_cond_timedwait",
    "pthread_cond_clockwait", "sem_wait",
    "sem_timedwait",          "sem_clockwait",
    "pthread_join",           "pthread_timedjoin_np",
    "pthread_mutex_lock",     "pthread_mutex_timedlock",
    "pthread_rwlock_rdlock",  "pthread_rwlock_wrlock",
    "pthread_barrier_wait",   "syscall"};

template <typename List, typename Value>
bool contains(const List& list, const Value& value) {
  return std::find(list.begin(), list.end(), value) != list.end();
}

unwind::WalkStart start_at(const user_regs_struct& r) {
  // By DWARF number (unwind/x86_64.h).
  const std::array<std::uint64_t, unwind::x86_64::kRegisterCount> values = {
      r.rax, r.rdx, r.rcx, r.rbx, r.rsi, r.rdi, r.rbp, r.rsp, r.r8,
      r.r9,  r.r10, r.r11, r.r12, r.r13, r.r14, r.r15, r.rip};
  unwind::WalkStart start;
  for (unsigned i = 0; i < values.size(); ++i)
    start.registers.set(i, values[i]);
  return start;
}

}  // namespace

SafePoint::SafePoint(pid_t pid, const ProcessImage& image, Budget& budget)
    : pid_(pid),
      image_(image),
      memory_(budget),
      images_(objects::FileMatch::kSameInode, unwind::Images::kMaxTableBytes, &budget),
      space_([this](std::uint32_t number) { return images_.table(number); },
             [this](std::uint64_t avma, std::span<std::byte> into) {
               return memory_.read(pid_, avma, into);
             }),
      walker_(cache_),
      frames_(unwind::SampleUnwinder::kMaxFrames),
      main_stack_(image.stack_start()) {
  for (const stream::Mapping& mapping : image.mappings()) {
    unwind::CodeMapping code{mapping.start, mapping.end, mapping.file_offset, std::nullopt};
    if (!mapping.file->is_anonymous())
      code.image = images_.number_of(mapping, static_cast<std::uint32_t>(pid));
    space_.map(code);
  }
}

std::string_view SafePoint::why_not(pid_t tid, const user_regs_struct& registers) {
  constexpr std::size_t kUsualBytes = 16'384, kMostBytes = std::size_t{1} << 20;
  // For the frame of a signal, with the largest vector registers.
  constexpr std::uint64_t kRoomBytes = 12'288;
  std::byte last{};
  if (memory_.read(pid_, registers.rsp - kRoomBytes, std::span(&last, 1)) == 0)
    return "its stack has no room";
  auto walked = walk(registers, kUsualBytes);
  if (walked.stop == unwind::Stop::kStackNotCaptured)
    walked = walk(registers, kMostBytes);
  if (walked.stop != unwind::Stop::kEndOfStack)
    return "its stack cannot be walked to the end";
  if (!is_own_stack(tid, registers))
    return "it runs on another stack than its own, as a coroutine does";
  call_number_ = registers.orig_rax;
  return why_not(std::span(frames_).first(walked.frames),
                 static_cast<std::int64_t>(registers.orig_rax) >= 0);
}

/// Walks the stack in its first `most` bytes.
unwind::WalkResult SafePoint::walk(const user_regs_struct& registers, std::size_t most) {
  stack_.resize(most);
  const std::size_t bytes = memory_.read(pid_, registers.rsp, stack_);
  const unwind::StackView view(registers.rsp, Bytes(stack_).first(bytes));
  history_.forget();
  return walker_.walk(space_, start_at(registers), view, frames_, history_);
}

/// Coroutines have small stacks, some of which have no end that we could notice.  The outermost
/// frame of a thread's own stack is near its start.  C libraries keep the thread's control block
/// there.
bool SafePoint::is_own_stack(pid_t tid, const user_regs_struct& registers) const {
  constexpr std::uint64_t kMostControlBytes = std::uint64_t{1} << 20, kMostStartBytes = 4096;
  const std::uint64_t root = history_.root_stack_pointer();
  const std::uint64_t start = tid == pid_ ? main_stack_ : registers.fs_base;
  const std::uint64_t most = tid == pid_ ? kMostStartBytes : kMostControlBytes;
  return root >= registers.rsp && start + kMostStartBytes >= root && start < root + most;
}

bool SafePoint::may_wait_in(std::uint64_t call) {
  return contains(kWaits, call) || call == SYS_futex;
}

bool SafePoint::is_interrupted_in(std::uint64_t call) {
  constexpr std::array<std::uint64_t, 3> kInterrupted = {SYS_epoll_wait, SYS_epoll_pwait,
                                                         SYS_epoll_pwait2};
  return contains(kInterrupted, call);
}

std::string_view SafePoint::why_not(std::span<const unwind::Frame> frames, bool is_in_call) const {
  for (std::size_t i = 0; i < frames.size(); ++i) {
    if (i > 0 && frames[i].is_exact())
      return "it is in a signal handler";
    if (image_.owner_of(frames[i].address()) == Owner::kLinker)
      return "it is in the dynamic linker";
  }
  const auto is_libc = [this](unwind::Frame frame) {
    return image_.owner_of(frame.address()) == Owner::kLibc;
  };
  const auto inner_end = std::find_if_not(frames.begin(), frames.end(), is_libc);
  if (inner_end != frames.begin() && !is_in_call)
    return "it is in the C library";
  if (inner_end != frames.begin())
    if (const auto why = why_not_waiting(std::prev(inner_end)->address()); !why.empty())
      return why;
  // The outermost ones have started the thread; outside of them may be the program's entry.
  auto outer_begin = frames.end();
  if (outer_begin != inner_end && !is_libc(frames.back()))
    --outer_begin;
  while (outer_begin != inner_end && is_libc(*std::prev(outer_begin)))
    --outer_begin;
  if (std::any_of(inner_end, outer_begin, is_libc))
    return "it is in the C library";
  const bool waits = is_in_call && contains(kWaits, call_number_);
  const bool is_in_allocator = std::any_of(inner_end, outer_begin, [this](unwind::Frame frame) {
    return image_.owner_of(frame.address()) == Owner::kAllocator;
  });
  return is_in_allocator && !waits ? "it is in the allocator" : "";
}

/// Of a thread in a system call, which it made in the function of the C library at `entered`.
std::string_view SafePoint::why_not_waiting(std::uint64_t entered) const {
  if (contains(kWaits, call_number_))
    return {};
  if (call_number_ == SYS_futex && contains(kWaitFunctions, image_.function_of_libc(entered)))
    return {};
  return "it is in a function of the C library that may hold a lock";
}

}  // namespace pe::recording

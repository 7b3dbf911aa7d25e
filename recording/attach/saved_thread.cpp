// SPDX-License-Identifier: MIT
#include "recording/attach/saved_thread.h"

#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <ucontext.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/error.h"
#include "stream/proc/maps.h"

namespace pe::recording {
namespace {

constexpr int kFloatsOfXsave = 0x202;  // linux/elf.h, NT_X86_XSTATE

bool is_in_call(const user_regs_struct& r) { return static_cast<std::int64_t>(r.orig_rax) >= 0; }

/// Makes the call of these registers be made again.
void repeat_call(user_regs_struct& r) {
  r.rip -= 2;
  r.rax = r.orig_rax;
  r.orig_rax = ~0ULL;
}

/// Does so if the call ended with EINTR although the thread has no signal to handle.  `mask` has
/// the signals that it blocks.
void repeat_if_interrupted(pid_t pid, pid_t tid, std::uint64_t mask, user_regs_struct& r) {
  if (!is_in_call(r) || static_cast<std::int64_t>(r.rax) != -EINTR)
    return;
  const auto status = stream::status_of(pid, tid);
  if (status && ((status->pending_signals | status->process_signals) & ~mask) == 0)
    repeat_call(r);
}

void append(std::vector<std::byte>& to, const void* bytes, std::size_t count) {
  const auto* first = static_cast<const std::byte*>(bytes);
  to.insert(to.end(), first, first + count);
}

/// The registers, in a signal's frame.
void set_registers(const user_regs_struct& r, mcontext_t& context) {
  auto& g = context.gregs;
  const auto set = [&g](int number, std::uint64_t value) {
    g[number] = static_cast<greg_t>(value);
  };
  set(REG_R8, r.r8), set(REG_R9, r.r9), set(REG_R10, r.r10), set(REG_R11, r.r11);
  set(REG_R12, r.r12), set(REG_R13, r.r13), set(REG_R14, r.r14), set(REG_R15, r.r15);
  set(REG_RDI, r.rdi), set(REG_RSI, r.rsi), set(REG_RBP, r.rbp), set(REG_RBX, r.rbx);
  set(REG_RDX, r.rdx), set(REG_RAX, r.rax), set(REG_RCX, r.rcx), set(REG_RSP, r.rsp);
  set(REG_RIP, r.rip), set(REG_EFL, r.eflags);
  constexpr unsigned kStackSegmentShift = 48;
  set(REG_CSGSFS, r.cs | r.ss << kStackSegmentShift);
}

}  // namespace

SavedThread SavedThread::of(pid_t tid) {
  constexpr std::size_t kMostBytes = 16'384;
  SavedThread saved;
  saved.floats.resize(kMostBytes);
  iovec floats{saved.floats.data(), saved.floats.size()};
  if (::ptrace(PTRACE_GETREGS, tid, nullptr, &saved.registers) != 0 ||
      ::ptrace(PTRACE_GETREGSET, tid, kFloatsOfXsave, &floats) != 0 ||
      ::ptrace(PTRACE_GETSIGMASK, tid, sizeof saved.mask, &saved.mask) != 0)
    throw_errno("ptrace", errno);
  saved.floats.resize(floats.iov_len);
  return saved;
}

std::vector<std::byte> SavedThread::frame(std::uint64_t at) const {
  constexpr std::uint64_t kFloatsAt = 1024;
  constexpr std::uint32_t kMagic1 = 0x46505853, kMagic2 = 0x46505845;  // asm/sigcontext.h
  constexpr std::size_t kSoftwareAt = 464;                             // struct _fpx_sw_bytes
  static_assert(sizeof(ucontext_t) <= kFloatsAt && kFloatsAt % kFrameAlignment == 0);
  user_regs_struct r = registers;
  const auto result = static_cast<std::int64_t>(r.rax);
  constexpr int kRestarts = 512, kRestartsNoHandler = 514, kRestartsBlock = 516;
  if (is_in_call(r) && -result >= kRestarts && -result <= kRestartsNoHandler)
    repeat_call(r);
  else if (is_in_call(r) && -result == kRestartsBlock)
    r.rax = static_cast<std::uint64_t>(-EINTR);
  ucontext_t context{};
  context.uc_flags = 7;                // the state of XSAVE; %ss is strict
  context.uc_stack.ss_flags = 0x7000;  // invalid: the alternate stack stays
  set_registers(r, context.uc_mcontext);
  std::memcpy(&context.uc_sigmask, &mask, sizeof mask);
  context.uc_mcontext.fpregs = static_cast<fpregset_t>(as_pointer(at + kFloatsAt));
  std::vector<std::byte> frame;
  append(frame, &context, sizeof context);
  frame.resize(kFloatsAt);
  append(frame, floats.data(), floats.size());
  const auto bytes = static_cast<std::uint32_t>(floats.size());
  const std::uint32_t extended = bytes + sizeof kMagic2;
  std::uint64_t features = 0;
  std::byte* software = frame.data() + kFloatsAt + kSoftwareAt;
  std::memcpy(&features, software, sizeof features);
  std::memcpy(software, &kMagic1, 4);
  std::memcpy(software + 4, &extended, 4);
  std::memcpy(software + 8, &features, 8);
  std::memcpy(software + 16, &bytes, 4);
  append(frame, &kMagic2, sizeof kMagic2);
  return frame;
}

void SavedThread::let_go(pid_t pid, pid_t tid) const {
  user_regs_struct r = registers;
  iovec area{const_cast<std::byte*>(floats.data()), floats.size()};
  ::ptrace(PTRACE_SETREGSET, tid, kFloatsOfXsave, &area);
  // Before the registers: if we are killed between the two, the thread restores itself.
  set_signal_mask(tid, mask);
  repeat_if_interrupted(pid, tid, mask, r);
  ::ptrace(PTRACE_SETREGS, tid, nullptr, &r);
  ::ptrace(PTRACE_DETACH, tid, nullptr, nullptr);
}

void let_unchanged_go(pid_t pid, pid_t tid) {
  user_regs_struct r{};
  std::uint64_t mask = 0;
  if (::ptrace(PTRACE_GETREGS, tid, nullptr, &r) == 0 &&
      ::ptrace(PTRACE_GETSIGMASK, tid, sizeof mask, &mask) == 0) {
    const auto before = r.rip;
    repeat_if_interrupted(pid, tid, mask, r);
    if (r.rip != before)
      ::ptrace(PTRACE_SETREGS, tid, nullptr, &r);
  }
  ::ptrace(PTRACE_DETACH, tid, nullptr, nullptr);
}

void set_signal_mask(pid_t tid, std::uint64_t mask) {
  ::ptrace(PTRACE_SETSIGMASK, tid, sizeof mask, &mask);
}

void LateStops::add(pid_t tid) {
  tids_.push_back(tid);
  look();
}

bool LateStops::contains(pid_t tid) const {
  return std::find(tids_.begin(), tids_.end(), tid) != tids_.end();
}

void LateStops::look() {
  std::erase_if(tids_, [this](pid_t tid) {
    int status = 0;
    const pid_t found = ::waitpid(tid, &status, __WALL | WNOHANG);
    if (found == 0)
      return false;
    if (found != tid || !WIFSTOPPED(status))
      return true;          // it has ended
    if (status >> 16 == 0)  // a signal
      return ::ptrace(PTRACE_DETACH, tid, nullptr, as_pointer(WSTOPSIG(status))) == 0;
    let_unchanged_go(pid_, tid);
    return true;
  });
}

}  // namespace pe::recording

// SPDX-License-Identifier: MIT
#include "recording/attach/borrowed_thread.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <ctime>
#include <optional>

#include "base/clock.h"
#include "base/error.h"
#include "recording/attach/call_filters.h"
#include "recording/ptrace/ptrace_refusal.h"
#include "recording/refused.h"
#include "stream/proc/maps.h"

namespace pe::recording {
namespace {

/// What the code in the process reads and writes; at the start of our data there.
struct Block {
  std::uint64_t function;
  BorrowedThread::Arguments arguments;
  std::uint64_t result;
  std::uint64_t is_done;
  std::uint64_t frame;  ///< where the thread's own state is
};

/// Calls Block::function, and then waits for us for some seconds; %rbx has the Block.
constexpr std::array<unsigned char, 72> kCode = {
    0x48, 0x8b, 0x7b, 0x08,                          // mov 8(%rbx), %rdi
    0x48, 0x8b, 0x73, 0x10,                          // mov 16(%rbx), %rsi
    0x48, 0x8b, 0x53, 0x18,                          // mov 24(%rbx), %rdx
    0x48, 0x8b, 0x4b, 0x20,                          // mov 32(%rbx), %rcx
    0x4c, 0x8b, 0x43, 0x28,                          // mov 40(%rbx), %r8
    0x4c, 0x8b, 0x4b, 0x30,                          // mov 48(%rbx), %r9
    0x31, 0xc0,                                      // xor %eax, %eax
    0xff, 0x13,                                      // call *(%rbx)
    0x48, 0x89, 0x43, 0x38,                          // mov %rax, 56(%rbx)
    0x48, 0xc7, 0x43, 0x40, 0x01, 0x00, 0x00, 0x00,  // movq $1, 64(%rbx)
    0xbd, 0x00, 0x09, 0x3d, 0x00,                    // mov $4000000, %ebp
    0xb8, 0x18, 0x00, 0x00, 0x00,                    // again: mov $24, %eax (sched_yield)
    0x0f, 0x05,                                      // syscall
    0xff, 0xcd,                                      // dec %ebp
    0x75, 0xf5,                                      // jnz again
    0x48, 0x8b, 0x63, 0x48,                          // mov 72(%rbx), %rsp
    0xb8, 0x0f, 0x00, 0x00, 0x00,                    // mov $15, %eax (rt_sigreturn)
    0x0f, 0x05,                                      // syscall
    0x0f, 0x0b, 0x90, 0x90, 0x90,                    // ud2
};

constexpr int kFloatsOfXsave = 0x202;  // linux/elf.h, NT_X86_XSTATE

void nap(std::uint64_t ns) {
  const timespec time = timespec_of(ns);
  ::nanosleep(&time, nullptr);
}

template <typename T>
void* as_pointer(T value) {
  return reinterpret_cast<void*>(static_cast<std::uintptr_t>(value));  // NOLINT
}

/// All but the signals of faults: if those are blocked, the kernel removes their handlers.
std::uint64_t mask_of_calls() {
  std::uint64_t mask = ~std::uint64_t{0};
  for (const int fault : {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP, SIGSYS, SIGKILL, SIGSTOP})
    mask &= ~(std::uint64_t{1} << (fault - 1));
  return mask;
}

void set_mask(pid_t tid, std::uint64_t mask) {
  ::ptrace(PTRACE_SETSIGMASK, tid, sizeof mask, &mask);
}

/// Whether a thread can stop soon.
bool can_stop(pid_t pid, pid_t tid) {
  const auto status = stream::status_of(pid, tid);
  return status && (status->state == 'S' || status->state == 'R');
}

/// Whether a thread has a signal that it will handle as soon as it runs.
bool has_pending_signal(pid_t pid, pid_t tid) {
  const auto status = stream::status_of(pid, tid);
  return !status || (status->pending_signals & ~status->blocked_signals) != 0;
}

}  // namespace

void LateStops::add(pid_t tid) {
  tids_.push_back(tid);
  look();
}

bool LateStops::contains(pid_t tid) const {
  return std::find(tids_.begin(), tids_.end(), tid) != tids_.end();
}

void LateStops::look() {
  std::erase_if(tids_, [](pid_t tid) {
    int status = 0;
    const pid_t found = ::waitpid(tid, &status, __WALL | WNOHANG);
    if (found == 0)
      return false;
    if (found != tid || !WIFSTOPPED(status))
      return true;  // it has ended
    // A stop by SIGSTOP goes on after this; a signal is delivered.
    const int signal = status >> 16 == 0 ? WSTOPSIG(status) : 0;
    return ::ptrace(PTRACE_DETACH, tid, nullptr, as_pointer(signal)) == 0;
  });
}

BorrowedThread::BorrowedThread(pid_t pid, const ProcessImage& image, SafePoint& safe_point,
                               LateStops& late_stops, const std::function<void()>& look)
    : pid_(pid),
      image_(image),
      late_stops_(late_stops),
      memory_(::open(fmt::format("/proc/{}/mem", stream::live_thread_of(pid)).c_str(),
                     O_RDWR | O_CLOEXEC)) {
  if (!memory_)
    throw Denied(fmt::format("{}: its memory cannot be opened: {}", pid, errno_text(errno)));
  choose(safe_point, look);
  try {
    prepare();
  } catch (...) {
    let_go();
    throw;
  }
}

BorrowedThread::~BorrowedThread() {
  if (tid_ != 0)
    let_go();
}

/// Tries the threads until one is at a safe point.  The first round only reads what their stacks
/// need, so that a stopped thread does not wait for that.
void BorrowedThread::choose(SafePoint& safe_point, const std::function<void()>& look) {
  constexpr std::uint64_t kPatienceNs = 10 * kNsPerSecond, kBetweenNs = 3'000'000;
  constexpr std::size_t kMostTrials = 8;
  const std::uint64_t begin_ns = monotonic_ns();
  const auto take_one = [&](std::size_t most, bool is_trial) {
    const std::vector<pid_t> threads = stream::threads_of(pid_);
    if (threads.empty())
      throw Refused(fmt::format("{}: is gone", pid_));
    const auto end = threads.begin() + static_cast<std::ptrdiff_t>(std::min(threads.size(), most));
    return std::any_of(threads.begin(), end, [&](pid_t tid) {
      look();
      late_stops_.look();
      return can_stop(pid_, tid) && take(tid, safe_point, is_trial);
    });
  };
  if (!safe_point.knows_stacks())
    take_one(kMostTrials, true);
  while (!take_one(~std::size_t{0}, false)) {
    if (monotonic_ns() - begin_ns > kPatienceNs)
      throw Refused(
          fmt::format("{}: none of its threads came to a safe point within 10 s (the last one: {})",
                      pid_, why_not_.empty() ? "it is stopped, or waits for a disk" : why_not_));
    nap(kBetweenNs);
  }
}

/// Stops a thread, and keeps it if it is at a safe point and this is no trial.
bool BorrowedThread::take(pid_t tid, SafePoint& safe_point, bool is_trial) {
  if (!stop(tid))
    return false;
  user_regs_struct registers{};
  constexpr unsigned long kUserCode64 = 0x33;  // arch/x86/include/asm/segment.h, __USER_CS
  const bool is_ours = ::ptrace(PTRACE_GETREGS, tid, nullptr, &registers) == 0;
  if (is_ours && registers.cs != kUserCode64)
    throw Refused(fmt::format("{}: is a 32-bit program", pid_));
  if (is_trial)
    ::ptrace(PTRACE_DETACH, tid, nullptr, nullptr);
  why_not_ = is_ours ? safe_point.why_not(registers) : "it is gone";
  if (!is_trial && why_not_.empty()) {
    check_call_filters(pid_, tid);
    tid_ = tid;
    saved_ = registers;
    save();
    return true;
  }
  if (!is_trial)
    ::ptrace(PTRACE_DETACH, tid, nullptr, nullptr);
  return false;
}

/// Attaches to a thread and stops it.  False if it does not stop soon, or is gone.
bool BorrowedThread::stop(pid_t tid) {
  if (late_stops_.contains(tid))
    return false;
  if (::ptrace(PTRACE_SEIZE, tid, nullptr, PTRACE_O_TRACESYSGOOD) != 0) {
    const int error = errno;
    if (error == ESRCH || !stream::status_of(pid_, tid))
      return false;
    throw Denied(fmt::format("{}: {}", pid_, why_not_traced(tid, error)));
  }
  ::ptrace(PTRACE_INTERRUPT, tid, nullptr, nullptr);
  constexpr std::uint64_t kPatienceNs = 100'000'000;  // there are other threads
  if (await_stop(tid, kPatienceNs))
    return true;
  late_stops_.add(tid);
  return false;
}

/// Waits for the stop that we have asked for, and passes signals on.
bool BorrowedThread::await_stop(pid_t tid, std::uint64_t patience_ns) {
  constexpr std::uint64_t kNapNs = 20'000;
  const std::uint64_t begin_ns = monotonic_ns();
  while (monotonic_ns() - begin_ns < patience_ns) {
    int status = 0;
    const pid_t found = ::waitpid(tid, &status, __WALL | WNOHANG);
    if (found < 0 || (found == tid && !WIFSTOPPED(status)))
      return false;
    if (found == 0) {
      nap(kNapNs);
      continue;
    }
    const int event = status >> 16, signal = WSTOPSIG(status);
    if (event == PTRACE_EVENT_STOP)
      return signal == SIGTRAP;  // others: SIGSTOP and the like have stopped the process
    ::ptrace(PTRACE_CONT, tid, nullptr, as_pointer(signal));
  }
  return false;
}

/// Reads what the thread needs to go on.  Throws Error.
void BorrowedThread::save() {
  constexpr std::size_t kMostBytes = 16'384;
  saved_floats_.resize(kMostBytes);
  iovec floats{saved_floats_.data(), saved_floats_.size()};
  if (::ptrace(PTRACE_GETREGSET, tid_, kFloatsOfXsave, &floats) != 0 ||
      ::ptrace(PTRACE_GETSIGMASK, tid_, sizeof saved_mask_, &saved_mask_) != 0)
    throw_errno("ptrace", errno);
  saved_floats_.resize(floats.iov_len);
}

/// Writes the frame of a signal handler with the thread's state.  rt_sigreturn(2) needs the stack
/// pointer that this returns.
std::uint64_t BorrowedThread::write_frame(std::uint64_t at) const {
  constexpr std::uint64_t kFloatsAt = 1024;  // a multiple of 64, above the context's size
  constexpr std::uint32_t kMagic1 = 0x46505853, kMagic2 = 0x46505845;  // asm/sigcontext.h
  constexpr std::size_t kSoftwareAt = 464;  // of sw_reserved in struct _fpx_sw_bytes' place
  static_assert(sizeof(ucontext_t) <= kFloatsAt);
  const user_regs_struct& r = saved_;
  ucontext_t context{};
  context.uc_flags = 7;                // the state of XSAVE; %ss is strict
  context.uc_stack.ss_flags = 0x7000;  // invalid: the alternate stack stays
  auto& g = context.uc_mcontext.gregs;
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
  // A call that waits is made again, or ends with EINTR: as after a signal without SA_RESTART.
  const auto result = static_cast<std::int64_t>(r.rax);
  constexpr int kRestarts = 512, kRestartsNoHandler = 514, kRestartsBlock = 516;  // linux/errno.h
  if (static_cast<std::int64_t>(r.orig_rax) >= 0 && -result >= kRestarts &&
      -result <= kRestartsNoHandler) {
    set(REG_RIP, r.rip - 2);
    set(REG_RAX, r.orig_rax);
  } else if (static_cast<std::int64_t>(r.orig_rax) >= 0 && -result == kRestartsBlock) {
    set(REG_RAX, static_cast<std::uint64_t>(-EINTR));
  }
  std::memcpy(&context.uc_sigmask, &saved_mask_, sizeof saved_mask_);
  context.uc_mcontext.fpregs = static_cast<fpregset_t>(as_pointer(at + kFloatsAt));
  std::vector<std::byte> floats = saved_floats_;
  const auto bytes = static_cast<std::uint32_t>(floats.size());
  const std::uint32_t extended = bytes + sizeof kMagic2;
  std::uint64_t features = 0;
  std::memcpy(&features, floats.data() + kSoftwareAt, sizeof features);
  std::byte* software = floats.data() + kSoftwareAt;
  std::memcpy(software, &kMagic1, 4);
  std::memcpy(software + 4, &extended, 4);
  std::memcpy(software + 8, &features, 8);
  std::memcpy(software + 16, &bytes, 4);
  floats.insert(floats.end(), reinterpret_cast<const std::byte*>(&kMagic2),
                reinterpret_cast<const std::byte*>(&kMagic2) + sizeof kMagic2);
  write(at, std::as_bytes(std::span(&context, 1)));
  write(at + kFloatsAt, floats);
  return at;
}

/// Maps the code and the data of calls.
void BorrowedThread::prepare() {
  set_mask(tid_, mask_of_calls());
  constexpr std::uint64_t kAnonymous = MAP_PRIVATE | MAP_ANONYMOUS;
  const auto is_mapped = [](std::uint64_t avma) { return avma + kPageBytes > kPageBytes; };
  const std::uint64_t data =
      step_through(image_.functions().mmap,
                   {0, kDataBytes, PROT_READ | PROT_WRITE, kAnonymous, ~std::uint64_t{0}, 0});
  if (!is_mapped(data))
    throw Refused(fmt::format("{}: it cannot map memory (ulimit -v, or a filter)", pid_));
  data_ = data;
  const std::uint64_t code =
      step_through(image_.functions().mmap,
                   {0, kPageBytes, PROT_READ | PROT_EXEC, kAnonymous, ~std::uint64_t{0}, 0});
  if (!is_mapped(code))
    throw Refused(fmt::format("{}: it may not map code (SELinux, or a filter)", pid_));
  code_ = code;
  write(code_, std::as_bytes(std::span(kCode)));  // even where the process may not write
}

/// Calls a function that makes one system call, on the thread's own stack.
std::uint64_t BorrowedThread::step_through(std::uint64_t function, const Arguments& arguments) {
  constexpr std::uint64_t kRedZoneBytes = 128, kAlignment = 64;
  const std::uint64_t restorer = image_.functions().restorer;
  const std::uint64_t frame =
      (saved_.rsp - kRedZoneBytes - (SafePoint::kRoomBytes / 2)) & ~(kAlignment - 1);
  write_frame(frame);
  const std::uint64_t sp = frame - sizeof restorer;
  write(sp, std::as_bytes(std::span(&restorer, 1)));
  user_regs_struct r = saved_;
  r.rip = function;
  r.rsp = sp;
  r.rdi = arguments[0], r.rsi = arguments[1], r.rdx = arguments[2];
  r.rcx = arguments[3], r.r8 = arguments[4], r.r9 = arguments[5];
  r.rax = 0;
  r.orig_rax = ~0ULL;
  if (::ptrace(PTRACE_SETREGS, tid_, nullptr, &r) != 0)
    throw_errno("ptrace", errno);
  // Single steps would be simpler.  But if we are killed meanwhile, the next one ends the process.
  await_call();
  await_call();
  if (::ptrace(PTRACE_GETREGS, tid_, nullptr, &r) != 0)
    throw_errno("ptrace", errno);
  ::ptrace(PTRACE_INTERRUPT, tid_, nullptr, nullptr);
  ::ptrace(PTRACE_CONT, tid_, nullptr, nullptr);
  if (!await_stop(tid_))
    leave_to_itself("its thread does not stop");
  return r.rax;
}

/// Lets the thread run to the next start or end of a system call.
void BorrowedThread::await_call() {
  constexpr int kCallStop = SIGTRAP | 0x80;  // ptrace(2), PTRACE_O_TRACESYSGOOD
  int status = 0;
  if (::ptrace(PTRACE_SYSCALL, tid_, nullptr, nullptr) != 0 ||
      ::waitpid(tid_, &status, __WALL) != tid_ || !WIFSTOPPED(status)) {
    tid_ = 0;
    throw Error(fmt::format("{}: ended while it was attached to", pid_));
  }
  if (WSTOPSIG(status) != kCallStop)
    throw Error(fmt::format("{}: {} in mmap(2)", pid_, ::strsignal(WSTOPSIG(status))));
}

std::uint64_t BorrowedThread::call(std::uint64_t function, const Arguments& arguments) {
  const Block block{function, arguments, 0, 0, write_frame(data_ + kFrameAt)};
  write(data_, std::as_bytes(std::span(&block, 1)));
  user_regs_struct r = saved_;
  r.rip = code_;
  r.rbx = data_;
  r.rsp = data_ + kDataBytes - kPageBytes;
  r.orig_rax = ~0ULL;
  if (::ptrace(PTRACE_SETREGS, tid_, nullptr, &r) != 0 ||
      ::ptrace(PTRACE_CONT, tid_, nullptr, nullptr) != 0)
    throw_errno("ptrace", errno);
  await_result();
  Block done{};
  read(data_, std::as_writable_bytes(std::span(&done, 1)));
  return done.result;
}

std::int64_t BorrowedThread::system_call(long number, std::uint64_t a, std::uint64_t b,
                                         std::uint64_t c) {
  return static_cast<std::int64_t>(
      call(image_.functions().syscall, {static_cast<std::uint64_t>(number), a, b, c, 0, 0}));
}

/// Waits until the code says that the function has returned, and stops the thread.
void BorrowedThread::await_result() {
  constexpr std::uint64_t kPatienceNs = 10 * kNsPerSecond, kNapNs = 50'000;
  const std::uint64_t begin_ns = monotonic_ns();
  Block block{};
  while (block.is_done == 0) {
    int status = 0;
    if (::waitpid(tid_, &status, __WALL | WNOHANG) == tid_) {
      if (!WIFSTOPPED(status)) {
        tid_ = 0;
        throw Error(fmt::format("{}: ended while it was attached to", pid_));
      }
      if (status >> 16 == 0)
        throw Error(fmt::format("{}: {} in the library", pid_, ::strsignal(WSTOPSIG(status))));
      ::ptrace(PTRACE_CONT, tid_, nullptr, nullptr);
    }
    if (monotonic_ns() - begin_ns > kPatienceNs)
      leave_to_itself("the library's call takes longer than 10 s: another thread holds a lock");
    nap(kNapNs);
    read(data_, std::as_writable_bytes(std::span(&block, 1)));
  }
  ::ptrace(PTRACE_INTERRUPT, tid_, nullptr, nullptr);
  user_regs_struct r{};
  if (!await_stop(tid_) || ::ptrace(PTRACE_GETREGS, tid_, nullptr, &r) != 0 || r.rip < code_ ||
      r.rip >= code_ + kPageBytes)
    leave_to_itself("its thread went on before we could look (this machine is busy)");
}

/// Gives our mappings back.
void BorrowedThread::unmap() {
  if (code_ != 0)
    step_through(image_.functions().syscall, {SYS_munmap, code_, kPageBytes, 0, 0, 0});
  if (data_ != 0)
    step_through(image_.functions().syscall, {SYS_munmap, data_, kDataBytes, 0, 0, 0});
}

/// Restores the thread, and lets it go on.
void BorrowedThread::let_go() noexcept {
  try {
    unmap();
  } catch (const Error&) {
    // The mappings stay: they cost some pages.
  }
  if (tid_ == 0)
    return;
  user_regs_struct r = saved_;
  // Some calls end with EINTR when their thread is stopped, though there is no signal.
  if (static_cast<std::int64_t>(r.orig_rax) >= 0 && static_cast<std::int64_t>(r.rax) == -EINTR &&
      !has_pending_signal(pid_, tid_)) {
    r.rip -= 2;
    r.rax = r.orig_rax;
    r.orig_rax = ~0ULL;
  }
  iovec floats{saved_floats_.data(), saved_floats_.size()};
  ::ptrace(PTRACE_SETREGSET, tid_, kFloatsOfXsave, &floats);
  ::ptrace(PTRACE_SETREGS, tid_, nullptr, &r);
  set_mask(tid_, saved_mask_);
  ::ptrace(PTRACE_DETACH, tid_, nullptr, nullptr);
  tid_ = 0;
}

/// Leaves the thread to itself: it restores its state when the call is over.  Throws Error.
void BorrowedThread::leave_to_itself(const char* why) {
  ::ptrace(PTRACE_INTERRUPT, tid_, nullptr, nullptr);
  if (await_stop(tid_))
    ::ptrace(PTRACE_DETACH, tid_, nullptr, nullptr);
  else
    late_stops_.add(tid_);
  tid_ = 0;
  throw Error(fmt::format("{}: {}", pid_, why));
}

void BorrowedThread::write(std::uint64_t avma, std::span<const std::byte> bytes) const {
  if (::pwrite(memory_.get(), bytes.data(), bytes.size(), static_cast<off_t>(avma)) !=
      static_cast<ssize_t>(bytes.size()))
    throw_errno(fmt::format("{}: write to its memory", pid_), errno);
}

void BorrowedThread::read(std::uint64_t avma, std::span<std::byte> into) const {
  if (::pread(memory_.get(), into.data(), into.size(), static_cast<off_t>(avma)) !=
      static_cast<ssize_t>(into.size()))
    throw_errno(fmt::format("{}: read from its memory", pid_), errno);
}

}  // namespace pe::recording

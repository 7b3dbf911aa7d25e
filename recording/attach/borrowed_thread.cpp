// SPDX-License-Identifier: MIT
#include "recording/attach/borrowed_thread.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <ctime>
#include <optional>

#include "base/clock.h"
#include "base/error.h"
#include "base/io/input.h"
#include "base/parse_number.h"
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

/// Calls Block::function, and then waits for us for about a second; %rbx has the Block.
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
    0xbd, 0x40, 0x42, 0x0f, 0x00,                    // mov $1000000, %ebp
    0xb8, 0x18, 0x00, 0x00, 0x00,                    // again: mov $24, %eax (sched_yield)
    0x0f, 0x05,                                      // syscall
    0xff, 0xcd,                                      // dec %ebp
    0x75, 0xf5,                                      // jnz again
    0x48, 0x8b, 0x63, 0x48,                          // mov 72(%rbx), %rsp
    0xb8, 0x0f, 0x00, 0x00, 0x00,                    // mov $15, %eax (rt_sigreturn)
    0x0f, 0x05,                                      // syscall
    0x0f, 0x0b, 0x90, 0x90, 0x90,                    // ud2
};

void nap(std::uint64_t ns) {
  const timespec time = timespec_of(ns);
  ::nanosleep(&time, nullptr);
}

/// All but the signals of faults: if those are blocked, the kernel removes their handlers.
std::uint64_t mask_of_calls() {
  std::uint64_t mask = ~std::uint64_t{0};
  for (const int fault : {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP, SIGSYS, SIGKILL, SIGSTOP})
    mask &= ~(std::uint64_t{1} << (fault - 1));
  return mask;
}

/// What a look at a thread that runs on says about stopping it.
enum class Chance : std::uint8_t { kNone, kGood, kLast };

/// A thread that waits in a call must be in one that may be safe.  Those come last that end with
/// EINTR when they are stopped: they are made again then, and wait longer than they should.
Chance chance_of(pid_t pid, pid_t tid) {
  constexpr std::size_t kMostBytes = 512;
  const auto status = stream::status_of(pid, tid);
  if (!status || (status->state != 'S' && status->state != 'R'))
    return Chance::kNone;
  const auto text = read_small_file(fmt::format("/proc/{}/task/{}/syscall", pid, tid), kMostBytes);
  const auto number =
      text ? parse_number<std::uint64_t>(std::string_view(*text).substr(0, text->find(' ')))
           : std::nullopt;
  if (!number)
    return Chance::kGood;  // it runs
  if (!SafePoint::may_wait_in(*number))
    return Chance::kNone;
  return SafePoint::is_interrupted_in(*number) ? Chance::kLast : Chance::kGood;
}

}  // namespace

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
  const std::uint64_t begin_ns = monotonic_ns();
  if (!safe_point.knows_stacks())
    take_one(safe_point, look, true);
  while (!take_one(safe_point, look, false)) {
    if (monotonic_ns() - begin_ns > kPatienceNs)
      throw Refused(
          fmt::format("{}: none of its threads came to a safe point within 10 s (the last one: {})",
                      pid_, why_not_.empty() ? "it is stopped, or waits for a disk" : why_not_));
    nap(kBetweenNs);
  }
}

/// Tries each thread once, or a few in a trial.
bool BorrowedThread::take_one(SafePoint& safe_point, const std::function<void()>& look,
                              bool is_trial) {
  constexpr std::size_t kMostTrials = 8;
  std::vector<pid_t> threads = stream::threads_of(pid_);
  if (threads.empty())
    throw Refused(fmt::format("{}: is gone", pid_));
  if (!image_.is_current())
    throw Refused(fmt::format("{}: has executed another program meanwhile: try again", pid_));
  if (is_trial && threads.size() > kMostTrials)
    threads.resize(kMostTrials);
  const auto try_those = [&](Chance wanted) {
    return std::any_of(threads.begin(), threads.end(), [&](pid_t tid) {
      look();
      late_stops_.look();
      return chance_of(pid_, tid) == wanted && take(tid, safe_point, is_trial);
    });
  };
  return try_those(Chance::kGood) || (!is_trial && try_those(Chance::kLast));
}

/// Stops a thread, and keeps it if it is at a safe point and this is no trial.
bool BorrowedThread::take(pid_t tid, SafePoint& safe_point, bool is_trial) {
  if (!stop(tid))
    return false;
  user_regs_struct registers{};
  constexpr unsigned long kUserCode64 = 0x33;  // arch/x86/include/asm/segment.h, __USER_CS
  const bool is_ours = ::ptrace(PTRACE_GETREGS, tid, nullptr, &registers) == 0;
  if (is_trial)
    let_unchanged_go(pid_, tid);
  why_not_ = is_ours ? safe_point.why_not(tid, registers) : "it is gone";
  if (is_trial)
    return false;
  if (is_ours && registers.cs != kUserCode64)
    why_not_ = "it runs 32-bit code";
  if (!why_not_.empty()) {
    let_unchanged_go(pid_, tid);
    return false;
  }
  check_call_filters(pid_, tid);
  saved_ = SavedThread::of(tid);
  tid_ = tid;
  return true;
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
  const int stopped_by = await_stop(tid, kPatienceNs);
  if (stopped_by == 0)
    late_stops_.add(tid);
  else if (stopped_by != SIGTRAP)  // SIGSTOP and the like have stopped the process
    let_unchanged_go(pid_, tid);
  return stopped_by == SIGTRAP;
}

/// Waits for the stop that we have asked for, and passes signals on.  Returns SIGTRAP; another
/// signal if that has stopped the process; 0 if the thread does not stop in time, or has ended.
int BorrowedThread::await_stop(pid_t tid, std::uint64_t patience_ns) {
  constexpr std::uint64_t kNapNs = 20'000;
  const std::uint64_t begin_ns = monotonic_ns();
  while (monotonic_ns() - begin_ns < patience_ns) {
    int status = 0;
    const pid_t found = ::waitpid(tid, &status, __WALL | WNOHANG);
    if (found < 0 || (found == tid && !WIFSTOPPED(status)))
      return 0;
    if (found == 0) {
      nap(kNapNs);
      continue;
    }
    const int event = status >> 16, signal = WSTOPSIG(status);
    if (event == PTRACE_EVENT_STOP)
      return signal;
    ::ptrace(PTRACE_CONT, tid, nullptr, as_pointer(signal));
  }
  return 0;
}

/// Maps the code and the data of calls.
void BorrowedThread::prepare() {
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
  constexpr std::uint64_t kRedZoneBytes = 128;
  const std::uint64_t restorer = image_.functions().restorer;
  // As close to the thread's own frames as that of a signal.
  const std::uint64_t frame_at = (saved_.registers.rsp - kRedZoneBytes - saved_.frame(0).size()) &
                                 ~(SavedThread::kFrameAlignment - 1);
  write(frame_at, saved_.frame(frame_at));
  const std::uint64_t sp = frame_at - sizeof restorer;
  write(sp, std::as_bytes(std::span(&restorer, 1)));
  user_regs_struct r = saved_.registers;
  r.rip = function;
  r.rsp = sp;
  r.rdi = arguments[0], r.rsi = arguments[1], r.rdx = arguments[2];
  r.rcx = arguments[3], r.r8 = arguments[4], r.r9 = arguments[5];
  r.rax = 0;
  r.orig_rax = ~0ULL;
  if (::ptrace(PTRACE_SETREGS, tid_, nullptr, &r) != 0)
    throw_errno("ptrace", errno);
  // If we are killed from here on, the frame restores the signals.
  set_signal_mask(tid_, mask_of_calls());
  // Single steps would be simpler.  But if we are killed meanwhile, the next one ends the process.
  await_call();
  await_call();
  if (::ptrace(PTRACE_GETREGS, tid_, nullptr, &r) != 0)
    throw_errno("ptrace", errno);
  ::ptrace(PTRACE_INTERRUPT, tid_, nullptr, nullptr);
  ::ptrace(PTRACE_CONT, tid_, nullptr, nullptr);
  if (await_stop(tid_) == 0)
    leave_to_itself("its thread does not stop");
  return r.rax;
}

/// Lets the thread run to the next start or end of a system call.
void BorrowedThread::await_call() {
  constexpr int kCallStop = SIGTRAP | 0x80;  // ptrace(2), PTRACE_O_TRACESYSGOOD
  for (int signal = 0;;) {
    int status = 0;
    if (::ptrace(PTRACE_SYSCALL, tid_, nullptr, as_pointer(signal)) != 0 ||
        ::waitpid(tid_, &status, __WALL) != tid_ || !WIFSTOPPED(status))
      forget_ended();
    if (status >> 16 == 0 && WSTOPSIG(status) == kCallStop)
      return;
    signal = signal_of_stop(status);
  }
}

[[noreturn]] void BorrowedThread::forget_ended() {
  tid_ = 0;
  throw Error(fmt::format("{}: ended while it was attached to", pid_));
}

/// The signal with which the thread goes on from a stop in a call of ours.  SIGSTOP cannot be
/// blocked: it stops the other threads, and this one when it is let go.  Throws Error for a fault.
int BorrowedThread::signal_of_stop(int status) const {
  const int signal = WSTOPSIG(status);
  if (status >> 16 != 0)
    return 0;
  if (signal != SIGSTOP)
    throw Error(fmt::format("{}: {} in a call of ours", pid_, ::strsignal(signal)));
  return signal;
}

std::uint64_t BorrowedThread::call(std::uint64_t function, const Arguments& arguments) {
  const Block block{function, arguments, 0, 0, data_ + kFrameAt};
  write(block.frame, saved_.frame(block.frame));
  write(data_, std::as_bytes(std::span(&block, 1)));
  user_regs_struct r = saved_.registers;
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
      if (!WIFSTOPPED(status))
        forget_ended();
      ::ptrace(PTRACE_CONT, tid_, nullptr, as_pointer(signal_of_stop(status)));
    }
    if (monotonic_ns() - begin_ns > kPatienceNs)
      leave_to_itself("the library's call takes longer than 10 s: another thread holds a lock");
    nap(kNapNs);
    read(data_, std::as_writable_bytes(std::span(&block, 1)));
  }
  ::ptrace(PTRACE_INTERRUPT, tid_, nullptr, nullptr);
  user_regs_struct r{};
  if (await_stop(tid_) == 0 || ::ptrace(PTRACE_GETREGS, tid_, nullptr, &r) != 0 || r.rip < code_ ||
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
  saved_.let_go(pid_, tid_);
  tid_ = 0;
}

/// Leaves the thread to itself: it restores its state when the call is over.  Throws Error.
void BorrowedThread::leave_to_itself(const char* why) {
  ::ptrace(PTRACE_INTERRUPT, tid_, nullptr, nullptr);
  if (await_stop(tid_) != 0)
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

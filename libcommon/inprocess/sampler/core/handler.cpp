// SPDX-License-Identifier: MIT
#include "inprocess/sampler/core/handler.h"

#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include <array>
#include <cstring>

#include "inprocess/atomics.h"
#include "inprocess/keep_errno.h"
#include "inprocess/sampler/core/process.h"
#include "inprocess/sampler/core/ring_writer.h"
#include "inprocess/sampler/core/take_sample.h"
#include "inprocess/sampler/core/take_script.h"

namespace pe::inprocess {
namespace {

/// A signal set in the kernel's form: signal n is bit n-1.
using KernelSet = std::uint64_t;
constexpr KernelSet kernel_set_of(int signal) noexcept { return KernelSet{1} << (signal - 1); }

KernelSet kernel_set(const sigset_t& set) noexcept {
  KernelSet bits = 0;
  std::memcpy(&bits, &set, sizeof bits);
  return bits;
}

/// The actions that the program has set for SIGPROF.  Handlers may read them at any time, so a new
/// action is written to another element before `current` selects it.
struct ProgramActions {
  std::array<struct sigaction, 8> all;
  std::uint32_t current;
  bool has_masked_all;  ///< it has blocked "all" signals somewhere, and we left SIGPROF out
  SigactionFunction next_sigaction, libc_sigaction;  ///< see set_real_sigaction()
};
// NOLINTNEXTLINE(cppcoreguidelines-avoid-non-const-global-variables): one a process
constinit ProgramActions program{};

struct sigaction program_action() noexcept {
  return program.all[load_published(program.current) % program.all.size()];
}

void keep_program_action(const struct sigaction& action) noexcept {
  const std::uint32_t next = program.current + 1;
  program.all[next % program.all.size()] = action;
  publish(program.current, next);
}

/// Records a sample of the thread in a slot.
void sample_slot(std::uint32_t slot, std::uint32_t weight, const ucontext_t& context) noexcept {
  Thread& thread = process.thread(slot);
  RingWriter ring(thread, process.ring(slot), process.settings.ring_bytes);
  take_script(process.header().script, load_relaxed(thread.tid) == process.pid,
              process.own[slot].script_state, record_bytes(process.settings.stack_bytes), ring);
  take_sample({.thread = thread,
               .ring = ring,
               .settings = process.settings,
               .pid = process.pid,
               .stack = process.own[slot].stack},
              weight, context);
}

void sample_timer(const siginfo_t& info, const ucontext_t& context) noexcept {
  const auto slot = static_cast<std::uint32_t>(value_of_timer(info));
  if (slot >= process.max_threads || !process.own[slot].is_armed || !is_slot_of_this_thread(slot))
    return;
  if (load_relaxed(process.header().wanted_tids[0]) != 0)
    begin_wanted_threads();
  const std::uint32_t weight = process.own[slot].timer.weight_of(info);
  if (weight != 0 && load_relaxed(process.thread(slot).is_unwanted) == 0)
    sample_slot(slot, weight, context);
}

void sample_process(const ucontext_t& context) noexcept {
  const std::uint32_t slot = slot_of_this_thread();
  if (slot != kNoSlot && load_relaxed(process.thread(slot).is_unwanted) == 0)
    sample_slot(slot, 1, context);
}

/// Handles a signal of this library; false if the signal belongs to the program.
bool take_ours(const siginfo_t& info, const ucontext_t& context) noexcept {
  const KeepErrno keep;
  const bool is_of_timer =
      process.cookie != 0 && (value_of_timer(info) & kCookieBits) == process.cookie;
  if (!process.is_sampling)
    return is_of_timer;  // the last signals of stopped timers
  if (is_of_timer) {
    sample_timer(info, context);
    return true;
  }
  const bool is_process_timer =
      info.si_code == SI_KERNEL && process.timer_kind == TimerKind::kProcess;
  if (is_process_timer)
    sample_process(context);
  return is_process_timer;
}

/// Does what the kernel does with an unhandled SIGPROF: ends the process.
void do_default() noexcept {
  if (program.has_masked_all) {
    // Without us the signal would stay pending, for a sigwait(3) or for ever.
    if (process.is_sampling)
      count_up(process.header().strays);
    return;
  }
  end_by_signal(program.libc_sigaction);
}

/// Calls the program's handler under the mask that the kernel would have set, because that handler
/// may leave by a jump.
void call_program(int signal, siginfo_t* info, ucontext_t* context) noexcept {
  const struct sigaction action = program_action();
  if (action.sa_handler == SIG_IGN)
    return;
  if (action.sa_handler == SIG_DFL)
    return do_default();
  if ((action.sa_flags & SA_RESETHAND) != 0) {
    struct sigaction none = {};
    none.sa_handler = SIG_DFL;
    keep_program_action(none);
  }
  const KernelSet mask = kernel_set(context->uc_sigmask) | kernel_set(action.sa_mask) |
                         ((action.sa_flags & SA_NODEFER) != 0 ? 0 : kernel_set_of(SIGPROF));
  ::syscall(SYS_rt_sigprocmask, SIG_SETMASK, &mask, nullptr, sizeof mask);
  if ((action.sa_flags & SA_SIGINFO) != 0)
    action.sa_sigaction(signal, info, context);
  else
    action.sa_handler(signal);
}

void handle(int signal, siginfo_t* info, void* memory) {
  auto* context = static_cast<ucontext_t*>(memory);
  if (!take_ours(*info, *context))
    call_program(signal, info, context);
}

}  // namespace

void set_real_sigaction(SigactionFunction next, SigactionFunction of_libc) noexcept {
  program.next_sigaction = next;
  program.libc_sigaction = of_libc != nullptr ? of_libc : next;
}

bool install_handler() noexcept {
  struct sigaction old = {};
  if (program.libc_sigaction == nullptr || !set_handler(program.libc_sigaction, handle, true, &old))
    return false;
  keep_program_action(old);
  unblock_for_samples();
  return true;
}

void set_program_action(const struct sigaction* action, struct sigaction* old) noexcept {
  const struct sigaction before = program_action();
  if (action != nullptr) {
    keep_program_action(*action);
    // A program that relies on interruption by its own signal is interrupted.  A sanitizer decides
    // when the program's handler is called, because that handler may call the sanitizer's runtime.
    if (is_function(*action))
      set_handler(program.next_sigaction, handle, (action->sa_flags & SA_RESTART) != 0, nullptr);
    else
      set_handler(program.libc_sigaction, handle, true, nullptr);
  }
  if (old != nullptr)
    *old = before;
}

bool has_program_handler() noexcept { return is_function(program_action()); }

void unblock_for_samples() noexcept {
  if (!has_program_handler())
    unblock_signal();
}

const sigset_t* without_samples(const sigset_t* set, sigset_t& room) noexcept {
  if (set == nullptr || !process.is_sampling || has_program_handler())
    return set;
  // A set that also contains SIGVTALRM, another timer's signal, is meant for all signals.  A set
  // without it names SIGPROF on purpose.
  const KernelSet bits = kernel_set(*set);
  if ((bits & kernel_set_of(SIGPROF)) == 0 || (bits & kernel_set_of(SIGVTALRM)) == 0)
    return set;
  program.has_masked_all = true;
  room = *set;
  ::sigdelset(&room, SIGPROF);
  return &room;
}

}  // namespace pe::inprocess

// SPDX-License-Identifier: MIT
#include "recording/signal/core/handler.h"

#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include <array>
#include <bit>
#include <cstring>

#include "recording/inprocess/atomics.h"
#include "recording/inprocess/keep_errno.h"
#include "recording/signal/core/process.h"
#include "recording/signal/core/ring_writer.h"
#include "recording/signal/core/take_sample.h"
#include "recording/signal/core/take_script.h"

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

/// The actions that the program has set for SIGPROF.  Handlers may read them while threads set
/// them, and a handler may set one in the middle of that.
class ProgramActions {
 public:
  [[nodiscard]] struct sigaction get() const noexcept {
    struct sigaction action = {};
    while (!read(load_published(current_), action)) {
    }
    return action;
  }
  /// Returns the one before.  The current number only rises: the element of a lower one may have
  /// been reused, so a setter that others have overtaken takes a new number.
  struct sigaction exchange(const struct sigaction& action) noexcept {
    const struct sigaction none = {};
    for (;;) {
      const std::uint32_t number = __atomic_add_fetch(&last_, 1U, __ATOMIC_RELAXED);
      write(number, action);
      struct sigaction before = {};
      const std::uint32_t now = load_published(current_);
      const bool is_read = read(now, before);
      if (static_cast<std::int32_t>(number - now) > 0 && change(current_, now, number))
        return is_read ? before : none;
    }
  }

 private:
  using Words = std::array<std::uint64_t, sizeof(struct sigaction) / sizeof(std::uint64_t)>;
  struct Element {
    std::uint32_t
        number;  ///< of the action in `words`; they are being written if it is another one
    Words words;
  };

  void write(std::uint32_t number, const struct sigaction& action) noexcept {
    Element& element = all_[number % all_.size()];
    __atomic_exchange_n(&element.number, ~number, __ATOMIC_ACQ_REL);
    const auto words = std::bit_cast<Words>(action);
    for (std::size_t i = 0; i < words.size(); ++i)
      store_relaxed(element.words[i], words[i]);
    publish(element.number, number);
  }
  /// Returns false if the element has been reused.
  bool read(std::uint32_t number, struct sigaction& action) const noexcept {
    auto& element = const_cast<Element&>(all_[number % all_.size()]);  // NOLINT: adds 0
    if (load_published(element.number) != number)
      return false;
    Words words;
    for (std::size_t i = 0; i < words.size(); ++i)
      words[i] = load_relaxed(element.words[i]);
    action = std::bit_cast<struct sigaction>(words);
    return __atomic_fetch_add(&element.number, 0U, __ATOMIC_ACQ_REL) == number;
  }

  std::array<Element, 32> all_;
  std::uint32_t current_, last_;
};

struct Program {
  ProgramActions actions;
  std::uint32_t
      has_masked_all;  ///< it has blocked "all" signals somewhere, and we left SIGPROF out
  SigactionFunction next_sigaction, libc_sigaction;  ///< see set_real_sigaction()
};
// NOLINTNEXTLINE(cppcoreguidelines-avoid-non-const-global-variables): one a process
constinit Program program{};

/// Records a sample of the thread in a slot.
void sample_slot(std::uint32_t slot, std::uint32_t weight, const ucontext_t& context) noexcept {
  Thread& thread = process.thread(slot);
  RingWriter ring(thread, process.ring(slot), process.settings.ring_bytes);
  const bool can_copy = load_relaxed(process.can_copy) != 0;
  ScriptRoom* const rooms = can_copy ? process.script_rooms : nullptr;
  const bool has_script = take_script(process.header().script,
                                      {.room = rooms != nullptr ? rooms + slot : nullptr,
                                       .known = process.own[slot].script_state,
                                       .is_first_thread = load_relaxed(thread.tid) == process.pid},
                                      record_bytes(process.settings.stack_bytes), ring);
  take_sample({.thread = thread,
               .ring = ring,
               .settings = process.settings,
               .pid = process.pid,
               .stack = process.own[slot].stack,
               .can_copy = can_copy,
               .lacks_script = !has_script},
              weight, context);
}

void sample_timer(const siginfo_t& info, ucontext_t& context) noexcept {
  const auto slot = static_cast<std::uint32_t>(value_of_timer(info));
  if (slot >= process.max_threads || load_relaxed(process.own[slot].is_armed) == 0 ||
      !is_slot_of_this_thread(slot))
    return;
  lend_alternate_stack(slot, context.uc_stack);
  if (load_relaxed(process.is_closed) == 0 && load_relaxed(process.header().wanted_tids[0]) != 0)
    begin_wanted_threads();
  const std::uint32_t weight = process.own[slot].timer.weight_of(info);
  if (weight != 0 && load_relaxed(process.thread(slot).is_unwanted) == 0)
    sample_slot(slot, weight, context);
}

void sample_process(ucontext_t& context) noexcept {
  const std::uint32_t slot = slot_of_this_thread();
  if (slot == kNoSlot)
    return;
  lend_alternate_stack(slot, context.uc_stack);
  if (load_relaxed(process.thread(slot).is_unwanted) == 0)
    sample_slot(slot, 1, context);
}

/// Handles a signal of this library; false if the signal belongs to the program.
bool take_ours(const siginfo_t& info, ucontext_t& context) noexcept {
  const KeepErrno keep;
  const bool is_of_timer =
      process.cookie != 0 && (value_of_timer(info) & kCookieBits) == process.cookie;
  if (!process.samples())
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
  if (load_relaxed(program.has_masked_all) != 0) {
    // Without us the signal would stay pending, for a sigwait(3) or for ever.
    if (process.samples())
      count_up(process.header().strays);
    return;
  }
  end_by_signal(program.libc_sigaction);
}

/// Calls the program's handler under the mask that the kernel would have set, because that handler
/// may leave by a jump.
void call_program(int signal, siginfo_t* info, ucontext_t* context) noexcept {
  const struct sigaction action = program.actions.get();
  if (action.sa_handler == SIG_IGN)
    return;
  if (action.sa_handler == SIG_DFL)
    return do_default();
  if ((action.sa_flags & SA_RESETHAND) != 0) {
    struct sigaction none = {};
    none.sa_handler = SIG_DFL;
    program.actions.exchange(none);
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
  if (program.libc_sigaction == nullptr ||
      !set_handler(program.libc_sigaction, handle, kUnnoticed, &old))
    return false;
  program.actions.exchange(old);
  unblock_for_samples();
  return true;
}

void remove_handler() noexcept {
  struct sigaction action = {};
  action.sa_handler = SIG_IGN;  // POSIX: discards pending signals of all threads
  program.libc_sigaction(SIGPROF, &action, nullptr);
  action = program.actions.get();
  program.next_sigaction(SIGPROF, &action, nullptr);
}

void set_program_action(const struct sigaction* action, struct sigaction* old) noexcept {
  const struct sigaction before =
      action != nullptr ? program.actions.exchange(*action) : program.actions.get();
  if (action != nullptr) {
    // A program that relies on interruption by its own signal is interrupted.  A handler that may
    // leave to another context (swapcontext(3)) has its thread's stack.  A sanitizer decides
    // when the program's handler is called, because that handler may call the sanitizer's runtime.
    if (is_function(*action))
      set_handler(program.next_sigaction, handle, action->sa_flags, nullptr);
    else
      set_handler(program.libc_sigaction, handle, kUnnoticed, nullptr);
  }
  if (old != nullptr)
    *old = before;
}

bool has_program_handler() noexcept { return is_function(program.actions.get()); }

void unblock_for_samples() noexcept {
  if (!has_program_handler())
    unblock_signal();
}

const sigset_t* without_samples(const sigset_t* set, sigset_t& room) noexcept {
  if (set == nullptr || !process.samples() || has_program_handler())
    return set;
  // A set that also contains SIGVTALRM, another timer's signal, is meant for all signals.  A set
  // without it names SIGPROF on purpose.
  const KernelSet bits = kernel_set(*set);
  if ((bits & kernel_set_of(SIGPROF)) == 0 || (bits & kernel_set_of(SIGVTALRM)) == 0)
    return set;
  store_relaxed(program.has_masked_all, 1U);
  room = *set;
  ::sigdelset(&room, SIGPROF);
  return &room;
}

}  // namespace pe::inprocess

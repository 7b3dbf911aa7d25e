// SPDX-License-Identifier: MIT
#include "recording/sigprof/sampling.h"

#include <ucontext.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <ctime>

#include "base/clock.h"
#include "recording/inprocess/atomics.h"
#include "recording/inprocess/keep_errno.h"
#include "recording/inprocess/runtime/proc_self.h"
#include "recording/inprocess/runtime/profiling_signal.h"
#include "recording/inprocess/runtime/timers.h"

namespace pe::inprocess {
namespace {

/// The bits of a cookie that are the same for the life of the process.  The next sixteen bits count
/// tables.
constexpr std::uint64_t kFamily = 0xffff000000000000;

struct HandlerState {
  ThreadTable* table;       ///< null: nothing is sampled
  std::uint32_t busy;       ///< number of handlers that may access the table
  std::uint64_t cookie;     ///< of the last table
  struct sigaction before;  ///< the action before the handler was installed
};
// NOLINTNEXTLINE(cppcoreguidelines-avoid-non-const-global-variables): there is one SIGPROF
constinit HandlerState state{};

/// Handles a signal that does not come from our timers.  The program has no handler for it.
void do_as_before() noexcept {
  if (state.before.sa_handler != SIG_IGN)
    end_by_signal(::sigaction);
}

void handle(int /*signal*/, siginfo_t* info, void* memory) {
  const KeepErrno keep;
  const std::uint64_t value = value_of_timer(*info);
  const std::uint64_t cookie = load_relaxed(state.cookie);
  if (((value ^ cookie) & kFamily) != 0)
    return do_as_before();
  // Either we see that the table is gone, or remove_handler() sees that we are here.
  __atomic_fetch_add(&state.busy, 1U, __ATOMIC_SEQ_CST);
  ThreadTable* const table = __atomic_load_n(&state.table, __ATOMIC_SEQ_CST);
  if (table != nullptr && ((value ^ cookie) & kCookieBits) == 0)
    table->take(static_cast<std::uint32_t>(value), *info, *static_cast<const ucontext_t*>(memory));
  __atomic_fetch_sub(&state.busy, 1U, __ATOMIC_SEQ_CST);
}

bool is_ours(const struct sigaction& action) noexcept {
  return (action.sa_flags & SA_SIGINFO) != 0 && action.sa_sigaction == handle;
}

}  // namespace

std::uint64_t next_cookie() noexcept {
  std::uint64_t cookie = load_relaxed(state.cookie);
  if (cookie == 0) {
    constexpr std::uint64_t kFamilies = 0xffff;
    const std::uint64_t seed = monotonic_ns() ^ static_cast<std::uint64_t>(::getpid());
    cookie = (scattered(seed, kFamilies) + 1) << 48;
  }
  constexpr std::uint64_t kOne = std::uint64_t{1} << 32;
  cookie = (cookie & kFamily) | ((cookie + kOne) & ~kFamily);
  store_relaxed(state.cookie, cookie);
  return cookie;
}

bool is_signal_free() noexcept {
  struct sigaction now = {};
  return ::sigaction(SIGPROF, nullptr, &now) == 0 && !is_function(now);
}

bool install_handler(ThreadTable& table) noexcept {
  __atomic_store_n(&state.table, &table, __ATOMIC_SEQ_CST);
  if (set_handler(::sigaction, handle, kUnnoticed, &state.before))
    return true;
  __atomic_store_n(&state.table, nullptr, __ATOMIC_SEQ_CST);
  return false;
}

bool is_handler_installed() noexcept {
  struct sigaction now = {};
  return ::sigaction(SIGPROF, nullptr, &now) == 0 && is_ours(now);
}

bool are_handlers_idle() noexcept { return __atomic_load_n(&state.busy, __ATOMIC_SEQ_CST) == 0; }

void remove_handler() noexcept {
  __atomic_store_n(&state.table, nullptr, __ATOMIC_SEQ_CST);
  while (!are_handlers_idle()) {
    constexpr timespec kMoment{0, 50'000};  // an interrupted handler needs a processor
    ::nanosleep(&kMoment, nullptr);
  }
  if (!is_handler_installed())
    return;
  struct sigaction ignore = {};
  ignore.sa_handler = SIG_IGN;  // POSIX: discards pending signals of all threads
  ::sigaction(SIGPROF, &ignore, nullptr);
  ::sigaction(SIGPROF, &state.before, nullptr);
}

void remove_handler_in_child() noexcept {
  state.table = nullptr;
  state.busy = 0;
  if (is_handler_installed())
    ::sigaction(SIGPROF, &state.before, nullptr);
}

namespace {

constexpr std::uint64_t kScanNs = 100'000'000, kScanShare = 50;

int result_of(Added added) noexcept {
  if (added == Added::kAdded || added == Added::kWasThere)
    return SP_SIGPROF_OK;
  if (added == Added::kClosed)
    return SP_SIGPROF_NOT_RUNNING;
  return errno == ENOMEM ? SP_SIGPROF_NO_MEMORY : SP_SIGPROF_NO_TIMER;
}

}  // namespace

int Sampling::begin(const Options& options) noexcept {
  adds_all_ = !options.only_chosen_threads;
  threads_.open(options, next_cookie());
  if (!install_handler(threads_))
    return SP_SIGPROF_SIGNAL_TAKEN;
  if (const int result = add_this_thread(); result != SP_SIGPROF_OK)
    return result;
  if (adds_all_)
    threads_.scan(0, true);
  return SP_SIGPROF_OK;
}

int Sampling::add_this_thread() noexcept {
  unblock_signal();
  return result_of(threads_.add(own_tid(), own_stack_bounds()));
}

void Sampling::follow_threads(std::uint64_t now_ns, pid_t own_tid) noexcept {
  if (now_ns < next_scan_ns_)
    return;
  // Keep this order: has_ended_ is set before our own remove_handler() is called.
  if (!is_handler_installed() && load_published(has_ended_) == 0) {
    store_relaxed(is_taken_over_, 1U);
    threads_.close();
  }
  threads_.scan(own_tid, adds_all_);
  const std::uint64_t took_ns = monotonic_ns() - now_ns;
  next_scan_ns_ = now_ns + std::max(kScanNs, took_ns * kScanShare);
}

void Sampling::end() noexcept {
  if (!is_handler_installed())
    store_relaxed(is_taken_over_, 1U);
  publish(has_ended_, 1U);
  threads_.close();
  remove_handler();
}

void Sampling::end_in_child() noexcept { remove_handler_in_child(); }

}  // namespace pe::inprocess

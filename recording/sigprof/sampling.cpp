// SPDX-License-Identifier: MIT
#include "recording/sigprof/sampling.h"

#include <algorithm>
#include <cerrno>

#include "base/clock.h"
#include "recording/inprocess/atomics.h"
#include "recording/inprocess/runtime/proc_self.h"
#include "recording/inprocess/runtime/profiling_signal.h"
#include "recording/sigprof/handler.h"

namespace pe::inprocess {
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

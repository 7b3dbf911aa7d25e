// SPDX-License-Identifier: MIT
#include "recording/ptrace/ptrace_engine.h"

#include <fmt/format.h>
#include <pthread.h>

#include <algorithm>
#include <csignal>
#include <future>
#include <utility>

#include "base/clock.h"
#include "base/error.h"
#include "base/text.h"
#include "recording/own_process.h"
#include "recording/ptrace/ptrace_refusal.h"
#include "recording/refused.h"
#include "recording/request.h"

namespace pe::recording {
namespace {

constexpr double kMicrosecondNs = 1e3;

/// Blocks SIGCHLD, so that neither this thread nor the new one misses that a traced thread has
/// stopped.
void block_signals(bool all) {
  sigset_t set;
  if (all)
    ::sigfillset(&set);
  else
    ::sigemptyset(&set);
  ::sigaddset(&set, SIGCHLD);
  ::pthread_sigmask(SIG_BLOCK, &set, nullptr);
}

}  // namespace

PtraceEngine::PtraceEngine(Request request, const Target& target, Budget& budget)
    : SampleSource(request), request_(std::move(request)) {
  if (const std::string why = why_no_ptrace(); !why.empty())
    throw Refused("ptrace: " + why);
  block_signals(false);
  records().read_scripts(budget);
  std::promise<void> attached;
  auto outcome = attached.get_future();
  thread_ = start_thread([this, target, &attached, &budget] {
    block_signals(true);
    std::unique_ptr<Tracer> tracer;
    try {
      tracer = std::make_unique<Tracer>(request_, records(), orders_, budget);
      tracer->attach(target);
      attached.set_value();
    } catch (...) {
      orders_.child->is_waiting = false;
      attached.set_exception(std::current_exception());
      return;  // threads that are traced already are released
    }
    try {
      tracer->run();
    } catch (...) {
      ring().fail(std::current_exception());
    }
    stop_times_ = tracer->stop_times();
    left_alone_ = tracer->left_alone();
    sampled_ns_ = tracer->sampled_ns();
    records().scripts()->describe(scripts_);
    orders_.child->is_waiting = false;
  });
  try {
    outcome.get();
  } catch (...) {
    thread_.join();
    throw;
  }
}

PtraceEngine::~PtraceEngine() { stop(); }

void PtraceEngine::poke() { ::pthread_kill(thread_.native_handle(), SIGCHLD); }

void PtraceEngine::start() {
  fast_ns_ = monotonic_ns();
  orders_.is_sampling = true;
  poke();
}

void PtraceEngine::stop() {
  if (!thread_.joinable())
    return;
  orders_.is_ending = true;
  poke();
  thread_.join();
}

std::optional<std::string> PtraceEngine::news() {
  const std::uint64_t interval_ns = orders_.interval_ns;
  constexpr double kNoticeable = 1.1;
  const double hz = kNsPerSecond / static_cast<double>(interval_ns);
  const bool is_slow =
      hz * kNoticeable < static_cast<double>(std::min(request_.frequency_hz, kMostHz));
  const std::uint64_t now_ns = monotonic_ns();
  if (!is_slow)
    fast_ns_ = now_ns;
  constexpr std::uint64_t kLastingNs = 1'000'000'000;  // a shorter slowdown comes from other load
  if (has_told_ || now_ns - fast_ns_ < kLastingNs)
    return std::nullopt;
  has_told_ = true;
  if (const std::uint64_t scan_ns = orders_.scan_ns; scan_ns > 0)
    return fmt::format(
        "{} Hz would cost too much with {} threads (it takes {:.1f} ms to check which of them run, "
        "and that may use {:.0f} % of a CPU): sampling at {:.0f} Hz for now, threads in turn; "
        "--engine perf and bpf check none",
        request_.frequency_hz, orders_.threads.load(), static_cast<double>(scan_ns) / kNsPerMs,
        100 * StopTimes::kMostBusy, hz);
  return fmt::format(
      "{} Hz would cost the target too much (a stop takes {:.0f} us, and no thread may be stopped "
      "for more than {:.0f} % of its time): sampling at {:.0f} Hz for now",
      request_.frequency_hz, static_cast<double>(orders_.mean_stop_ns) / kMicrosecondNs,
      100 * StopTimes::kMostStopped, hz);
}

std::optional<SampledTime> PtraceEngine::sampled_time() const {
  // Programs that are left alone have their own line.
  if (request_.clock != Clock::kCpu || !request_.thread_choice.empty() || left_alone_ != 0)
    return std::nullopt;
  return SampledTime{.clock = {.period_ns = kNsPerSecond / request_.frequency_hz,
                               .kind = SampledClock::Kind::kOfStops},
                     .ns = sampled_ns_};
}

void PtraceEngine::describe(Closing& closing) const {
  const StopTimes& times = stop_times_;
  closing.add(scripts_);
  if (left_alone_ != 0)
    closing.doubt(plural(left_alone_, "program") +
                      " with LeakSanitizer, which fails when traced: not sampled",
                  "set ASAN_OPTIONS=detect_leaks=0");
  if (times.stops() == 0) {
    closing.detail("no thread was stopped");
    return;
  }
  // The stops themselves are a part of what the target lost: a thread then waits for its CPU, on
  // which we, or its other threads, run.
  closing.detail(fmt::format(
      "{}, {} of them without a sample, {:.3f} s in all, {:.0f} us on average, {:.0f} us at most; "
      "the target lost these, and up to {:.3f} s in which its threads were ready but had no CPU",
      plural(times.stops(), "stop"), times.vain_stops(),
      static_cast<double>(times.total_ns()) / kNsPerSecond,
      static_cast<double>(times.total_ns()) / kMicrosecondNs / static_cast<double>(times.stops()),
      static_cast<double>(times.longest_ns()) / kMicrosecondNs,
      static_cast<double>(times.waited_ns()) / kNsPerSecond));
}

}  // namespace pe::recording

// SPDX-License-Identifier: MIT
#include "pe-record/engine_source.h"

#include <ctime>
#include <utility>

#include "base/clock.h"
#include "recording/built_parts.h"
#include "recording/ptrace/ptrace_engine.h"
#include "recording/ptrace/ptrace_refusal.h"
#include "recording/signal/signal_engine.h"
#include "recording/stream/whole_stream.h"

namespace pe::recorder {

EngineSource::EngineSource(const Options& options, recording::Session& session)
    : RingSource(options, session) {
  if (request_.engine == recording::Engine::kSignal)
    open_signal();
  else
    session.start_child();
  session.watch_targets();
  if (!engine_)
    open_ptrace();
  open_stream(engine_->event(), engine_->notes());
}

/// Starts the command, too, which has to find the engine.
void EngineSource::open_signal() {
  if constexpr (recording::built::kHasInprocess) {
    auto engine = std::make_unique<recording::SignalEngine>(request_, session_.request().command,
                                                            session_.budget());
    session_.start_child(engine->environment());
    request_.stack_bytes = engine->stack_bytes();
    engine_ = std::move(engine);
  }
}

void EngineSource::open_ptrace() {
  if constexpr (recording::built::kHasPtrace) {
    if (session_.target().is_command)
      recording::check_command_is_traceable(session_.request().command.front());
    auto engine =
        std::make_unique<recording::PtraceEngine>(request_, session_.target(), session_.budget());
    if (session_.target().is_command)
      session_.child()->is_waited_for(engine->child());
    engine_ = std::move(engine);
  }
}

void EngineSource::start() {
  write_head(*stream_, {&engine_->event(), 1},
             request_.engine == recording::Engine::kSignal ? "signal" : "ptrace");
  unreadable_ = write_running(*stream_, engine_->event().attr, session_.target());
  expect_command();
  if (engine_->sampled_time())
    time_.emplace(session_.target());
  engine_->start();
  session_.start_clock(monotonic_ns());
}

std::vector<int> EngineSource::fds() const { return {engine_->ring().fd()}; }

/// Every sample wakes us; a few at once are cheaper.
std::optional<std::uint64_t> EngineSource::pass() {
  constexpr std::uint64_t kLeastNs = 4'000'000;
  const std::uint64_t passed_ns = monotonic_ns() - last_pass_ns_;
  const timespec rest = timespec_of(kLeastNs - std::min(passed_ns, kLeastNs));
  ::nanosleep(&rest, nullptr);
  engine_->ring().check();
  drain_->pass(engine_->ring().rings(), engine_->ring().complete_ns());
  last_pass_ns_ = monotonic_ns();
  if (time_)
    time_->look();
  if (const auto news = engine_->news())
    session_.note(*news);
  return std::nullopt;
}

void EngineSource::stop() {
  if (time_)
    time_->check_last();
  engine_->stop();
}

Closing EngineSource::finish(recording::Ended /*ended*/) {
  engine_->ring().check();
  drain_->finish(engine_->ring().rings());
  recording::Passed passed = drain_->passed();
  const std::uint64_t lost = engine_->lost();
  passed.lost.add_counted(lost);
  write_tail(*stream_, engine_->event(), lost);
  Closing closing = close_stream(passed);
  if (const auto sampled = engine_->sampled_time(); sampled && time_)
    if (const std::string unsampled = describe_unsampled(*sampled, time_->used_ns());
        !unsampled.empty())
      closing.doubts.push_back(unsampled);
  engine_->describe(closing);
  return closing;
}

}  // namespace pe::recorder

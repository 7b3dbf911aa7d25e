// SPDX-License-Identifier: MIT
#include "pe-record/taken_recording.h"

#include <fmt/format.h>
#include <unistd.h>

#include <ctime>
#include <utility>

#include "base/cli/progress.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/plural.h"
#include "record/engines/ptrace_engine.h"
#include "record/engines/ptrace_refusal.h"
#include "record/engines/signal_engine.h"
#include "record/stream/whole_stream.h"

namespace pe::recorder {

using record::Ended;

TakenRecording::TakenRecording(const Options& options, Io& io)
    : options_(options),
      request_(options.request),
      io_(io),
      ending_(signals_, options.duration_ns),
      target_(options.target) {
  if (request_.engine == record::Engine::kSignal)
    open_signal();
  else if (!options.command.empty())
    start_child({});
  watched_.emplace(child_ ? std::vector<pid_t>{} : target_.processes, target_.threads);
  activity_.emplace(target_);
  if (!source_)
    open_ptrace();
  event_ = record::taken_event(request_, notes_);
  output_.emplace(options, io, ending_);
  for (const std::string& note : notes_)
    if (!options.quiet)
      say(io, note);
  ending_.on_stop([this] {
    if (time_)
      time_->look_last();
    source_->stop();
    cost_.end_wall();
  });
  tell_stall(ending_, options, io);
  stream_.emplace(output_->writer(), event_.attr, request_);
  taken_.emplace(*stream_, event_, source_->queue());
}

/// And starts the command, which has to find the engine there.
void TakenRecording::open_signal() {
  auto engine = std::make_unique<record::SignalEngine>(request_, options_.command);
  start_child(engine->environment());
  request_.stack_bytes = engine->stack_bytes();
  source_ = std::move(engine);
}

void TakenRecording::open_ptrace() {
  if (target_.is_command)
    record::check_command_is_traceable(options_.command.front());
  auto engine = std::make_unique<record::PtraceEngine>(request_, target_);
  if (target_.is_command)
    child_->is_waited_for(engine->child());
  source_ = std::move(engine);
}

void TakenRecording::start_child(const std::vector<std::string>& environment) {
  child_.emplace(Child::start(options_.command, writes_file(options_) ? -1 : STDERR_FILENO,
                              signals_.before(), environment));
  if (target_.is_command)
    target_.processes = {child_->pid()};
}

int TakenRecording::run() {
  write_head(*stream_, {&event_, 1});
  cost_.begin_wall();
  unreadable_ = write_running(*stream_, event_.attr, target_);
  if (source_->sampled_time())
    time_.emplace(target_);
  source_->start();
  ending_.begin_at(monotonic_ns());
  if (child_)
    child_->go();
  const Ended ended = watch();
  if (ended == Ended::kReaderGone)
    throw BrokenPipe("stdout");
  finish();
  return end(ended);
}

int TakenRecording::end(Ended ended) {
  const int status =
      record::end_status(child(), ended, [this](const std::string& what) { say(io_, what); });
  if (ending_.was_cut_off())
    return record::cut_off_status(child());
  if (taken_->passed().samples > 0)
    return status;
  say(io_, why_empty(*activity_, {.request = request_,
                                  .period_ns = record::period_ns_of(event_.attr),
                                  .lost = source_->lost()}));
  return record::empty_status(child(), status);
}

/// Every sample asks for us; a few at once are cheaper.
void TakenRecording::take() {
  constexpr std::uint64_t kLeastNs = 4'000'000;
  const std::uint64_t passed_ns = monotonic_ns() - last_pass_ns_;
  const timespec rest{0, static_cast<long>(kLeastNs - std::min(passed_ns, kLeastNs))};
  ::nanosleep(&rest, nullptr);
  taken_->pass();
  last_pass_ns_ = monotonic_ns();
}

Ended TakenRecording::watch() {
  Progress progress(io_.err, options_.quiet);
  const std::vector<int> fds{source_->queue().fd()};
  const record::WatchRequest request{.ending = ending_,
                                     .child = child(),
                                     .targets = *watched_,
                                     .ring_fds = fds,
                                     .reader_fd = output_->fd()};
  const Ended ended = record::watch(request, [&] {
    take();
    if (time_)
      time_->look();
    if (const auto news = source_->news(); news && !options_.quiet)
      say(io_, *news);
    progress.show([&] { return "pe-record: " + plural(taken_->passed().samples, "sample"); });
    return std::nullopt;
  });
  progress.clear();
  return ended;
}

void TakenRecording::finish() {
  taken_->pass();
  record::Passed passed = taken_->passed();
  const std::uint64_t lost = source_->lost();
  passed.lost.add_counted(lost);
  write_tail(*stream_, event_, lost);
  std::string unsampled;
  if (const auto sampled = source_->sampled_time(); sampled && time_)
    unsampled = describe_unsampled(*sampled, time_->used_ns());
  const std::string kept = record::finish_keeping(*stream_);
  if (!unreadable_.empty())
    say(io_, record::describe_unreadable(unreadable_));
  if (!options_.quiet)
    say(io_, closing_line(passed, *stream_, cost_) + (unsampled.empty() ? "" : "; " + unsampled) +
                 source_->describe() + kept + (ending_.was_cut_off() ? record::kCutOff : ""));
}

}  // namespace pe::recorder

// SPDX-License-Identifier: MIT
#include "pe-record/taken_recording.h"

#include <fmt/format.h>
#include <unistd.h>

#include <ctime>
#include <utility>

#include "base/error.h"
#include "base/plural.h"
#include "cli/progress.h"
#include "recording/ptrace_engine.h"
#include "recording/ptrace_refusal.h"
#include "recording/signal_engine.h"
#include "recording/whole_stream.h"

namespace pe::record {

using recording::Ended;

TakenRecording::TakenRecording(const Options& options, cli::Io& io)
    : options_(options),
      request_(options.request),
      io_(io),
      ending_(signals_, options.duration_ns),
      target_(options.target) {
  if (request_.engine == recording::Engine::kSignal)
    open_signal();
  else if (!options.command.empty())
    start_child({});
  watched_.emplace(child_ ? std::vector<pid_t>{} : target_.processes, target_.threads);
  activity_.emplace(target_);
  if (!source_)
    open_ptrace();
  event_ = recording::taken_event(request_, notes_);
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
  auto engine = std::make_unique<recording::SignalEngine>(request_, options_.command);
  start_child(engine->environment());
  request_.stack_bytes = engine->stack_bytes();
  source_ = std::move(engine);
}

void TakenRecording::open_ptrace() {
  if (target_.is_command)
    recording::check_command_is_traceable(options_.command.front());
  auto engine = std::make_unique<recording::PtraceEngine>(request_, target_);
  if (target_.is_command)
    child_->is_waited_for(engine->child());
  source_ = std::move(engine);
}

void TakenRecording::start_child(const std::vector<std::string>& environment) {
  child_.emplace(cli::Child::start(options_.command, writes_file(options_) ? -1 : STDERR_FILENO,
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
  ending_.begin_at(recording::monotonic_ns());
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
      recording::end_status(child(), ended, [this](const std::string& what) { say(io_, what); });
  if (ending_.was_cut_off())
    return recording::cut_off_status(child());
  if (taken_->passed().samples > 0)
    return status;
  say(io_, why_empty(*activity_, {.request = request_,
                                  .period_ns = recording::period_ns_of(event_.attr),
                                  .lost = source_->lost()}));
  return recording::empty_status(child(), status);
}

/// Every sample asks for us; a few at once are cheaper.
void TakenRecording::take() {
  constexpr std::uint64_t kLeastNs = 4'000'000;
  const std::uint64_t passed_ns = recording::monotonic_ns() - last_pass_ns_;
  const timespec rest{0, static_cast<long>(kLeastNs - std::min(passed_ns, kLeastNs))};
  ::nanosleep(&rest, nullptr);
  taken_->pass();
  last_pass_ns_ = recording::monotonic_ns();
}

Ended TakenRecording::watch() {
  cli::Progress progress(io_.err, options_.quiet);
  const std::vector<int> fds{source_->queue().fd()};
  const recording::WatchRequest request{.ending = ending_,
                                        .child = child(),
                                        .targets = *watched_,
                                        .ring_fds = fds,
                                        .reader_fd = output_->fd()};
  const Ended ended = recording::watch(request, [&] {
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
  recording::Passed passed = taken_->passed();
  const std::uint64_t lost = source_->lost();
  passed.lost.add_counted(lost);
  write_tail(*stream_, event_, lost);
  std::string unsampled;
  if (const auto sampled = source_->sampled_time(); sampled && time_)
    unsampled = describe_unsampled(*sampled, time_->used_ns());
  const std::string kept = recording::finish_keeping(*stream_);
  if (!unreadable_.empty())
    say(io_, recording::describe_unreadable(unreadable_));
  if (!options_.quiet)
    say(io_, closing_line(passed, *stream_, cost_) + (unsampled.empty() ? "" : "; " + unsampled) +
                 source_->describe() + kept + (ending_.was_cut_off() ? recording::kCutOff : ""));
}

}  // namespace pe::record

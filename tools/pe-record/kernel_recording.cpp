// SPDX-License-Identifier: MIT
#include "pe-record/kernel_recording.h"

#include <fmt/format.h>
#include <unistd.h>

#include "base/error.h"
#include "base/plural.h"
#include "cli/progress.h"
#include "recording/own_rights.h"
#include "recording/whole_stream.h"

namespace pe::record {
namespace {

using recording::BpfEngine;
using recording::Ended;

/// The engine bpf if it was asked for.
std::unique_ptr<BpfEngine> load_bpf(const Options& options) {
  if (options.request.engine != recording::Engine::kBpf)
    return nullptr;
  const std::vector<int>& cpus = options.target.cpus;
  try {
    return std::make_unique<BpfEngine>(
        options.request, options.target,
        cpus.empty() ? recording::online_cpus().size() : cpus.size());
  } catch (const Error& error) {
    throw Error(fmt::format("--engine bpf: {}", error.what()));
  }
}

}  // namespace

KernelRecording::KernelRecording(const Options& options, cli::Io& io)
    : options_(options),
      io_(io),
      ending_(signals_, options.duration_ns),
      engine_(load_bpf(options)),
      target_(options.target) {
  if (!options.command.empty())
    child_.emplace(cli::Child::start(options.command, writes_file(options) ? -1 : STDERR_FILENO,
                                     signals_.before()));
  if (target_.is_command)
    target_.processes = {child_->pid()};
  watched_.emplace(child_ ? std::vector<pid_t>{} : target_.processes, target_.threads);
  activity_.emplace(target_);
  counters_.emplace(options.request, target_, engine_.get());
  output_.emplace(options, io, ending_);
  for (const std::string& note : counters_->notes())
    if (!options.quiet)
      say(io, note);
  ending_.on_stop([this] {
    counters_->stop();
    if (time_)
      time_->look_last();
    cost_.end_wall();
  });
  tell_stall(ending_, options, io);
  const perf_event_attr& attr = counters_->events().front().attr;
  stream_.emplace(output_->writer(), attr, options.request, engine_ ? &engine_->tables() : nullptr);
  drain_.emplace(*stream_, attr, engine_.get());
  recording::keep_rights_to_record(engine_ != nullptr);
}

int KernelRecording::run() {
  write_head(*stream_, counters_->events());
  // From here on the kernel keeps everything that happens; what was before is read now.
  cost_.begin_wall();
  const std::uint64_t read_ns = recording::monotonic_ns();
  if (counters_->sampled_clock())
    time_.emplace(target_);
  counters_->start();
  ending_.begin_at(read_ns);
  unreadable_ = write_running(*stream_, counters_->layout(), target_);
  if (engine_)
    engine_->begin(*stream_, target_, read_ns);
  if (child_)
    child_->go();
  const Ended ended = watch();
  if (ended == Ended::kReaderGone)
    throw BrokenPipe("stdout");
  finish();
  return end(ended);
}

int KernelRecording::end(Ended ended) {
  const int status =
      recording::end_status(child(), ended, [this](const std::string& what) { say(io_, what); });
  if (ending_.was_cut_off())
    return recording::cut_off_status(child());
  if (drain_->passed().samples > 0)
    return status;
  say(io_,
      why_empty(*activity_, {.request = options_.request,
                             .period_ns = recording::period_ns_of(counters_->events().front().attr),
                             .program = child_ ? options_.command.front() : "",
                             .lost = lost_}));
  return recording::empty_status(child(), status);
}

Ended KernelRecording::watch() {
  cli::Progress progress(io_.err, options_.quiet);
  std::vector<int> ring_fds = counters_->ring_fds();
  if (engine_)
    ring_fds.push_back(engine_->ring_fd());
  const recording::WatchRequest request{.ending = ending_,
                                        .child = child(),
                                        .targets = *watched_,
                                        .ring_fds = ring_fds,
                                        .reader_fd = output_->fd()};
  const Ended ended = recording::watch(request, [&] {
    drain_->pass(counters_->rings());
    if (time_)
      time_->look();
    progress.show([&] { return "pe-record: " + plural(drain_->passed().samples, "sample"); });
    return drain_->urgency_ns();
  });
  progress.clear();
  return ended;
}

void KernelRecording::finish() {
  drain_->finish(counters_->rings());
  recording::Passed passed = drain_->passed();
  passed.lost.add_counted(write_tail(*stream_, *counters_, engine_ ? engine_->lost() : 0));
  lost_ = passed.lost.count();
  std::string unsampled;
  if (const auto clock = counters_->sampled_clock(); clock && time_)
    unsampled = recording::describe_unsampled(
        {.clock = *clock, .ns = (passed.samples + passed.lost.count()) * clock->period_ns},
        time_->used_ns());
  if (const std::uint64_t missing = counters_->not_followed(); missing > 0)
    unsampled += fmt::format("{}{} not followed", unsampled.empty() ? "" : "; ",
                             plural(missing, "forked process"));
  const std::string of_engine = engine_ ? engine_->describe(*stream_) : "";
  const std::string kept = recording::finish_keeping(*stream_);
  if (!unreadable_.empty())
    say(io_, recording::describe_unreadable(unreadable_));
  if (!options_.quiet)
    say(io_, closing_line(passed, *stream_, cost_) + (unsampled.empty() ? "" : "; " + unsampled) +
                 of_engine + kept + (ending_.was_cut_off() ? recording::kCutOff : ""));
}

}  // namespace pe::record

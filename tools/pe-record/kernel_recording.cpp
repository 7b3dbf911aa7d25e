// SPDX-License-Identifier: MIT
#include "pe-record/kernel_recording.h"

#include <fmt/format.h>
#include <unistd.h>

#include "base/cli/progress.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/plural.h"
#include "record/own_rights.h"
#include "record/stream/whole_stream.h"

namespace pe::recorder {
namespace {

using record::BpfEngine;
using record::Ended;

/// The engine bpf if it was asked for.
std::unique_ptr<BpfEngine> load_bpf(const Options& options) {
  if (options.request.engine != record::Engine::kBpf)
    return nullptr;
  const std::vector<int>& cpus = options.target.cpus;
  try {
    return std::make_unique<BpfEngine>(options.request, options.target,
                                       cpus.empty() ? record::online_cpus().size() : cpus.size());
  } catch (const Error& error) {
    throw Error(fmt::format("--engine bpf: {}", error.what()));
  }
}

}  // namespace

KernelRecording::KernelRecording(const Options& options, Io& io)
    : options_(options),
      io_(io),
      ending_(signals_, options.duration_ns),
      engine_(load_bpf(options)),
      target_(options.target) {
  if (!options.command.empty())
    child_.emplace(Child::start(options.command, writes_file(options) ? -1 : STDERR_FILENO,
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
  record::keep_rights_to_record(engine_ != nullptr);
}

int KernelRecording::run() {
  write_head(*stream_, counters_->events());
  // From here on the kernel keeps everything that happens; what was before is read now.
  const std::uint64_t read_ns = monotonic_ns();
  if (!engine_)
    begin_time(read_ns);
  counters_->start();
  unreadable_ = write_running(*stream_, counters_->layout(), target_);
  if (engine_) {  // which samples from now on: the tables of large programs take a second
    engine_->begin(*stream_, target_, read_ns);
    begin_time(monotonic_ns());
  }
  if (child_)
    child_->go();
  const Ended ended = watch();
  if (ended == Ended::kReaderGone)
    throw BrokenPipe("stdout");
  finish();
  return end(ended);
}

void KernelRecording::begin_time(std::uint64_t now_ns) {
  cost_.begin_wall();
  if (counters_->sampled_clock())
    time_.emplace(target_);
  ending_.begin_at(now_ns);
}

int KernelRecording::end(Ended ended) {
  const int status =
      record::end_status(child(), ended, [this](const std::string& what) { say(io_, what); });
  if (ending_.was_cut_off())
    return record::cut_off_status(child());
  if (drain_->passed().samples > 0)
    return status;
  say(io_,
      why_empty(*activity_, {.request = options_.request,
                             .period_ns = record::period_ns_of(counters_->events().front().attr),
                             .program = child_ ? options_.command.front() : "",
                             .lost = lost_}));
  return record::empty_status(child(), status);
}

Ended KernelRecording::watch() {
  Progress progress(io_.err, options_.quiet);
  std::vector<int> ring_fds = counters_->ring_fds();
  if (engine_)
    ring_fds.push_back(engine_->ring_fd());
  const record::WatchRequest request{.ending = ending_,
                                     .child = child(),
                                     .targets = *watched_,
                                     .ring_fds = ring_fds,
                                     .reader_fd = output_->fd()};
  const Ended ended = record::watch(request, [&] {
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
  record::Passed passed = drain_->passed();
  passed.lost.add_counted(write_tail(*stream_, *counters_, engine_ ? engine_->lost() : 0));
  lost_ = passed.lost.count();
  std::string unsampled;
  if (const auto clock = counters_->sampled_clock(); clock && time_)
    unsampled =
        record::describe_unsampled({.clock = *clock,
                                    .ns = (passed.samples + passed.lost.count()) * clock->period_ns,
                                    .stolen_ns = time_->stolen_ns()},
                                   time_->used_ns());
  if (const std::uint64_t missing = counters_->not_followed(); missing > 0)
    unsampled += fmt::format("{}{} not followed", unsampled.empty() ? "" : "; ",
                             plural(missing, "forked process"));
  const std::string of_engine = engine_ ? engine_->describe(*stream_) : "";
  const std::string kept = record::finish_keeping(*stream_);
  if (!unreadable_.empty())
    say(io_, record::describe_unreadable(unreadable_));
  if (!options_.quiet)
    say(io_, closing_line(passed, *stream_, cost_) + (unsampled.empty() ? "" : "; " + unsampled) +
                 of_engine + kept + (ending_.was_cut_off() ? record::kCutOff : ""));
}

}  // namespace pe::recorder

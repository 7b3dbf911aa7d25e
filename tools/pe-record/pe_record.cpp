// SPDX-License-Identifier: MIT
#include "pe-record/pe_record.h"

#include <fmt/format.h>
#include <unistd.h>

#include <memory>
#include <optional>
#include <vector>

#include "base/error.h"
#include "base/plural.h"
#include "base/quote.h"
#include "cli/child.h"
#include "cli/progress.h"
#include "cli/stop_signals.h"
#include "pe-record/options.h"
#include "recording/bpf_engine.h"
#include "recording/counters.h"
#include "recording/drain.h"
#include "recording/ending.h"
#include "recording/own_cost.h"
#include "recording/target_options.h"
#include "recording/watch.h"
#include "recording/whole_stream.h"

namespace pe {
namespace {

using record::Options;
using recording::BpfEngine;
using recording::Counters;
using recording::Ended;
using recording::Engine;

void say(cli::Io& io, const std::string& what) {
  io.err.write("pe-record: " + printable(what) + "\n");
  io.err.flush();
}

bool writes_file(const Options& options) {
  return !options.output.empty() && options.output != "-";
}

std::string closing_line(const recording::Passed& passed, const recording::RecordedStream& stream,
                         const recording::OwnCost& cost) {
  std::string line =
      fmt::format("{}, {} lost, {} seen; {}", plural(passed.samples, "sample"), passed.lost.count(),
                  plural(passed.threads.size(), "thread"), cost.describe());
  if (passed.throttled > 0)
    line += fmt::format("; throttled {}", plural(passed.throttled, "time"));
  if (const auto* unwinder = stream.unwinder())
    if (const std::string stacks = stacks::describe(unwinder->counts()); !stacks.empty())
      line += "; " + stacks;
  return line;
}

/// The engine bpf if it was asked for, or can be had; the request then says which one it is.
std::unique_ptr<BpfEngine> choose_engine(Options& options, cli::Io& io) {
  recording::Request& request = options.request;
  if (request.engine == Engine::kPerf)
    return nullptr;
  const std::vector<int>& cpus = options.target.cpus;
  try {
    auto engine = std::make_unique<BpfEngine>(
        request, cpus.empty() ? recording::online_cpus().size() : cpus.size());
    request.engine = Engine::kBpf;
    return engine;
  } catch (const Error& error) {
    if (request.engine == Engine::kBpf)
      throw Error(fmt::format("--engine bpf: {}", error.what()));
    if (!options.quiet)
      say(io, fmt::format("the kernel does not walk stacks here ({}): copying them", error.what()));
    request.engine = Engine::kPerf;
    return nullptr;
  }
}

/// What takes part in a recording, in the order in which it is set up.
class Recording {
 public:
  Recording(Options& options, cli::Io& io);

  /// Until something ends it; returns the status.
  int run();

 private:
  Ended watch();
  void finish();
  [[nodiscard]] cli::Child* child() { return child_ ? &*child_ : nullptr; }

  recording::OwnCost cost_;
  const Options& options_;
  cli::Io& io_;
  cli::StopSignals signals_;
  recording::Ending ending_;
  std::unique_ptr<BpfEngine> engine_;
  std::optional<cli::Child> child_;
  recording::Target target_;
  std::optional<recording::TargetWatch> watched_;
  std::optional<Counters> counters_;
  std::optional<io::FileOutput> file_;
  io::Output* out_ = nullptr;
  std::optional<perf::StreamWriter> writer_;
  std::optional<recording::RecordedStream> stream_;
  std::optional<recording::Drain> drain_;
  std::vector<pid_t> unreadable_;
};

Recording::Recording(Options& options, cli::Io& io)
    : options_(options),
      io_(io),
      ending_(signals_, options.duration_ns),
      engine_(choose_engine(options, io)),
      target_(options.target) {
  if (!options.command.empty())
    child_.emplace(cli::Child::start(options.command, writes_file(options) ? -1 : STDERR_FILENO));
  if (target_.is_command)
    target_.processes = {child_->pid()};
  watched_.emplace(child_ ? std::vector<pid_t>{} : target_.processes, target_.threads);
  counters_.emplace(options.request, target_, engine_.get());
  // Only now: a recording that cannot be made must not cost an older one its file.
  if (writes_file(options))
    file_.emplace(options.output);
  out_ = file_ ? &*file_ : &io.out;
  for (const std::string& note : counters_->notes())
    if (!options.quiet)
      say(io, note);
  out_->wait_by([this](int fd) { return ending_.wait_for_room(fd); });
  ending_.on_stop([this] {
    counters_->stop();
    cost_.end_wall();
  });
  if (!options.quiet)
    ending_.on_stall([this] { say(io_, recording::kReaderStalls); });
  writer_.emplace(*out_);
  const perf_event_attr& attr = counters_->events().front().attr;
  stream_.emplace(*writer_, attr, options.request, engine_ ? &engine_->tables() : nullptr);
  drain_.emplace(*stream_, attr, engine_.get());
}

int Recording::run() {
  write_head(*stream_, *counters_);
  // From here on the kernel keeps everything that happens; what was before is read now.
  cost_.begin_wall();
  const std::uint64_t read_ns = recording::monotonic_ns();
  counters_->start();
  ending_.begin_at(read_ns);
  unreadable_ = write_running(*stream_, *counters_, target_);
  if (engine_)
    engine_->begin(*stream_, target_, read_ns);
  if (child_)
    child_->go();
  const Ended ended = watch();
  if (ended == Ended::kReaderGone)
    throw BrokenPipe("stdout");
  finish();
  const int status =
      recording::end_status(child(), ended, [this](const std::string& what) { say(io_, what); });
  return ending_.was_cut_off() ? recording::cut_off_status(child()) : status;
}

Ended Recording::watch() {
  cli::Progress progress(io_.err, options_.quiet);
  std::vector<int> ring_fds = counters_->ring_fds();
  if (engine_)
    ring_fds.push_back(engine_->ring_fd());
  const recording::WatchRequest request{.ending = ending_,
                                        .child = child(),
                                        .targets = *watched_,
                                        .ring_fds = ring_fds,
                                        .reader_fd = out_->fd()};
  const Ended ended = recording::watch(request, [&] {
    drain_->pass(counters_->rings());
    progress.show([&] { return "pe-record: " + plural(drain_->passed().samples, "sample"); });
    return drain_->urgency_ns();
  });
  progress.clear();
  return ended;
}

void Recording::finish() {
  drain_->finish(counters_->rings());
  recording::Passed passed = drain_->passed();
  passed.lost.add_counted(write_tail(*stream_, *counters_, engine_ ? engine_->lost() : 0));
  const std::string of_engine = engine_ ? engine_->describe(*stream_) : "";
  const std::string kept = recording::finish_keeping(*stream_);
  if (!unreadable_.empty())
    say(io_, recording::describe_unreadable(unreadable_));
  if (!options_.quiet)
    say(io_, closing_line(passed, *stream_, cost_) + of_engine + kept +
                 (ending_.was_cut_off() ? recording::kCutOff : ""));
}

int work(const cli::CommandLine& line, cli::Io& io) {
  Options options = record::read_options(line);
  recording::tidy(options.target);
  if (!writes_file(options) && io.out.is_terminal())
    throw UsageError(
        "the stream is binary: pipe it into pe-symbolize, or name a file with --output");
  return Recording(options, io).run();
}

}  // namespace

const cli::Tool kPeRecord{
    .name = "pe-record",
    .synopsis = "[OPTION]... [-p PID | -t TID | -a | --cgroup PATH] [[--] COMMAND...]",
    .summary = "Sample the call chains of running programs into a sample stream.",
    .add_options = record::add_options,
    .work = work,
    .runs_command = true,
};

int pe_record_main(std::span<const std::string> args, cli::Io& io) {
  return cli::run(kPeRecord, args, io);
}

}  // namespace pe

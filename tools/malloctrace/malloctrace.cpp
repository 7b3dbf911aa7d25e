// SPDX-License-Identifier: MIT
#include "malloctrace/malloctrace.h"

#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "base/cli/child.h"
#include "base/cli/progress.h"
#include "base/cli/stop_signals.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/plural.h"
#include "base/quote.h"
#include "inprocess/command.h"
#include "malloctrace/command.h"
#include "malloctrace/interrupts.h"
#include "malloctrace/options.h"
#include "malloctrace/processes.h"
#include "malloctrace/sink.h"
#include "malloctrace/snapshots.h"
#include "record/own_cost.h"
#include "record/watch.h"

namespace pe {
namespace {

using malloctrace::HeapOfProcess;
using malloctrace::Options;
using malloctrace::Processes;
using record::Ended;

void say(Io& io, const std::string& what) {
  io.err.write("malloctrace: " + printable(what) + "\n");
  io.err.flush();
}

/// A traced process takes two descriptors while it runs.
void allow_many_descriptors() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0)
    return;
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

/// What takes part, in the order in which it is set up.
class Trace {
 public:
  Trace(const Options& options, Io& io);

  /// Until something ends it; returns the status.
  int run();

 private:
  Ended watch();
  void finish(Ended ended);
  [[nodiscard]] malloctrace::Summary summary() const;
  [[nodiscard]] std::string describe_tracing(const malloctrace::Summary& all) const;
  void tell_end(const malloctrace::Summary& all, Ended ended);

  record::OwnCost cost_;
  const Options& options_;
  Io& io_;
  StopSignals signals_;
  Processes processes_;
  malloctrace::Snapshots snapshots_;
  Child child_;
  std::optional<FileOutput> file_;
  Output* out_ = nullptr;
  std::optional<malloctrace::Sink> sink_;
};

Child start_traced(const Options& options, const Processes& processes, const SignalState& signals) {
  const std::string program = inprocess::find_program(options.command.front());
  if (options.writes_file())
    malloctrace::check_is_not_output(program, options.output);
  malloctrace::check_can_be_traced(program);
  const std::string library = inprocess::find_library("libmalloctrace_preload.so");
  return Child::start(options.command, options.writes_file() ? -1 : STDERR_FILENO, signals,
                      malloctrace::tracing_environment(options, library, processes.listener()));
}

Trace::Trace(const Options& options, Io& io)
    : options_(options),
      io_(io),
      processes_([this](const HeapOfProcess& process) { sink_->add(process); }),
      snapshots_(options, processes_, [this](const std::string& what) { say(io_, what); }),
      child_(start_traced(options, processes_, signals_.before())) {
  allow_many_descriptors();  // the command has its own limit already
  // Only now: a run that cannot be made must not cost an older one its file.
  if (options.writes_file())
    file_.emplace(options.output, Named::kAtOnce);
  out_ = file_ ? &*file_ : &io.out;
  sink_.emplace(options, *out_);
}

int Trace::run() {
  if (!options_.follow)
    processes_.take_only(child_.pid());
  cost_.begin_wall();
  child_.go();
  const Ended ended = watch();
  if (ended == Ended::kReaderGone)
    throw BrokenPipe("stdout");
  cost_.end_wall();
  finish(ended);
  return record::end_status(&child_, ended, [this](const std::string& what) { say(io_, what); });
}

Ended Trace::watch() {
  constexpr std::uint64_t kTickNs = std::uint64_t{Processes::kTickMs} * 1'000'000;
  Progress progress(io_.err, options_.quiet);
  record::TargetWatch nothing_else({}, {});
  const std::vector<int> fds{processes_.fd(), snapshots_.fd()};
  record::Ending ending(signals_, std::nullopt);
  malloctrace::Interrupts interrupts(child_);
  ending.bear_signals_by(
      [&](const StopSignal& signal) { return interrupts.goes_on_after(signal, monotonic_ns()); });
  const record::WatchRequest request{.ending = ending,
                                     .child = &child_,
                                     .targets = nothing_else,
                                     .ring_fds = fds,
                                     .reader_fd = options_.report ? -1 : out_->fd()};
  const std::uint64_t began_ns = monotonic_ns();
  std::uint64_t tick = 0;
  const Ended ended = record::watch(request, [&] {
    processes_.pass();
    const std::uint64_t now_ns = monotonic_ns();
    if (const std::uint64_t now = (now_ns - began_ns) / kTickNs; now != tick)
      processes_.tick(static_cast<std::uint32_t>(tick = now));
    snapshots_.write_due(now_ns);
    if (interrupts.is_time_to_tell(now_ns) && !options_.quiet)
      say(io_, "waiting for the command to end; another interrupt ends the trace");
    progress.show([&] {
      return fmt::format("malloctrace: {} running, {} ended", processes_.running(),
                         sink_->summary().processes);
    });
    return std::optional(kTickNs - (monotonic_ns() - began_ns) % kTickNs);
  });
  progress.clear();
  return ended;
}

void Trace::finish(Ended ended) {
  processes_.leave([this](const HeapOfProcess& process) { sink_->add(process); });
  const malloctrace::Summary all = summary();
  sink_->finish(options_.report ? describe_tracing(all) : "");
  tell_end(all, ended);
}

/// The end of the report.
std::string Trace::describe_tracing(const malloctrace::Summary& all) const {
  std::string text = fmt::format(
      "\nTracing itself\n\n  {}, finding names included\n  {}\n"
      "  {} walked: {} found, {} known from the walk before\n",
      cost_.describe(), malloctrace::describe_memory(all), plural(all.walks, "stack"),
      plural(all.frames_walked, "frame"), all.frames_reused);
  if (const std::string losses = malloctrace::describe_losses(all); !losses.empty())
    text += fmt::format("  {}\n", losses);
  return text;
}

malloctrace::Summary Trace::summary() const {
  malloctrace::Summary all = sink_->summary();
  all.refused = processes_.refused();
  all.vanished = processes_.vanished();
  all.processes -= std::min(all.processes, processes_.went_on());
  return all;
}

void Trace::tell_end(const malloctrace::Summary& all, Ended ended) {
  if (all.processes == 0)
    say(io_, fmt::format("{}: no process of it was traced: of one that could not be, a line "
                         "above says why; others are static or setuid, or lost LD_PRELOAD",
                         options_.command.front()));
  if (options_.quiet)
    return;
  std::string line = fmt::format("{}; {}; {}", malloctrace::describe_use(all), cost_.describe(),
                                 malloctrace::describe_memory(all));
  if (const std::string losses = malloctrace::describe_losses(all); !losses.empty())
    line += "; " + losses;
  if (const std::string resident = malloctrace::describe_resident(all); !resident.empty())
    line += "; " + resident;
  if (ended == Ended::kTarget && all.running > 0)
    line += fmt::format("; {} as {} then, still running", plural(all.running, "process"),
                        all.running == 1 ? "it was" : "they were");
  say(io_, line);
}

int work(const CommandLine& line, Io& io) {
  const Options options = malloctrace::read_options(line);
  if (!options.writes_file() && !options.report && io.out.is_terminal())
    throw UsageError(
        "the stream is binary: pipe it into pe-symbolize, name a file with --output, or ask for "
        "--report");
  return Trace(options, io).run();
}

}  // namespace

const Tool kMalloctrace{
    .name = "malloctrace",
    .synopsis = "[OPTION]... [--] COMMAND [ARG]...",
    .summary = "Record where a program allocates, what it leaks, and what its peak was made of.",
    .add_options = malloctrace::add_options,
    .work = work,
    .runs_command = true,
};

int malloctrace_main(std::span<const std::string> args, Io& io) {
  return run(kMalloctrace, args, io);
}

}  // namespace pe

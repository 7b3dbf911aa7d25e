// SPDX-License-Identifier: MIT
#include "pe-record/pe_record.h"

#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <memory>

#include "base/error.h"
#include "base/plural.h"
#include "cli/child.h"
#include "cli/progress.h"
#include "cli/stop_signals.h"
#include "pe-record/counters.h"
#include "pe-record/drain.h"
#include "pe-record/options.h"
#include "pe-record/synthesize.h"
#include "pe-record/watch.h"
#include "proc/maps.h"

namespace pe {
namespace {

using record::Counters;
using record::Ended;
using record::Options;

double own_cpu_seconds() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  constexpr double kMicrosecond = 1e-6;
  return static_cast<double>(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
         static_cast<double>(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * kMicrosecond;
}

void say(cli::Io& io, const std::string& what) {
  io.err.write("pe-record: " + what + "\n");
  io.err.flush();
}

/// Where the stream goes: -o FILE, or standard output, never a terminal.
std::unique_ptr<io::Output> open_output(const Options& options, cli::Io& io) {
  if (!options.output.empty() && options.output != "-")
    return std::make_unique<io::FileOutput>(options.output);
  if (io.out.is_terminal())
    throw UsageError(
        "the stream is binary: pipe it into pe-symbolize, or name a file with --output");
  return nullptr;
}

record::Target find_target(const Options& options, const cli::Child* child) {
  if (child != nullptr)
    return {.processes = {child->pid()}, .threads = {}, .is_command = true};
  return {.processes = options.pids, .threads = options.tids, .is_command = false};
}

void write_head(perf::StreamWriter& writer, const Counters& counters) {
  writer.write_header();
  for (const auto& event : counters.events()) {
    // An attr record holds at most 8,000 ids; those of one event are all alike to a reader of one
    // event.
    constexpr std::size_t kMaxIds = 7'500;
    const std::span ids(event.ids);
    writer.write_attr(event.attr, ids.first(std::min(ids.size(), kMaxIds)));
    if (!event.ids.empty())
      writer.write_event_name(event.ids.front(), event.name);
  }
}

/// What was running before; returns how many processes could not be read.
std::uint64_t write_running(perf::StreamWriter& writer, const Counters& counters,
                            const Options& options, const record::Target& target) {
  record::Synthesizer synthesizer(writer, counters.events().front().attr.sample_type);
  synthesizer.kernel();
  std::vector<pid_t> processes = target.processes;
  if (target.is_command)
    return 0;  // everything of it will be recorded
  if (options.all_processes || !options.cgroup.empty())
    processes = proc::all_processes();
  for (const pid_t tid : target.threads)
    if (const auto status = proc::status_of(tid))
      processes.push_back(status->pid);
  std::sort(processes.begin(), processes.end());
  processes.erase(std::unique(processes.begin(), processes.end()), processes.end());
  for (const pid_t pid : processes)
    synthesizer.process(pid);
  writer.flush();
  return synthesizer.unreadable_processes();
}

std::string closing_line(const record::Passed& passed, double cpu_seconds, double wall_seconds) {
  std::string line = fmt::format(
      "{}, {} lost, {} seen; own CPU {:.3f} s, {:.2f} % of {:.2f} s",
      plural(passed.samples, "sample"), passed.lost, plural(passed.threads.size(), "thread"),
      cpu_seconds, wall_seconds > 0 ? 100 * cpu_seconds / wall_seconds : 0.0, wall_seconds);
  if (passed.throttled > 0)
    line += fmt::format("; throttled {}", plural(passed.throttled, "time"));
  return line;
}

/// The status to end with, once the recording is whole.
int end_status(cli::Child* child, Ended ended, cli::Io& io) {
  if (child == nullptr)
    return cli::kOk;
  if (ended == Ended::kTarget)
    return child->poll_status().value_or(cli::kOk);
  constexpr int kPatienceMs = 2000;
  if (!child->terminate(kPatienceMs))
    say(io, "the command did not end on SIGTERM within 2 s: killed");
  return cli::kOk;
}

int record_target(const Options& options, cli::Io& io) {
  const std::unique_ptr<io::Output> file = open_output(options, io);
  cli::StopSignals signals;
  std::optional<cli::Child> child;
  if (!options.command.empty())
    child.emplace(cli::Child::start(options.command, file ? -1 : STDERR_FILENO));
  const record::Target target = find_target(options, child ? &*child : nullptr);
  record::TargetWatch targets(child ? std::vector<pid_t>{} : target.processes, target.threads);
  const double cpu_before = own_cpu_seconds();
  Counters counters(options, target);
  for (const std::string& note : counters.notes())
    if (!options.quiet)
      say(io, note);
  // From here on the kernel keeps everything that happens; what was before is read now.
  const std::uint64_t began_ns = record::monotonic_ns();
  perf::StreamWriter writer(file ? *file : io.out);
  write_head(writer, counters);
  const std::uint64_t unreadable = write_running(writer, counters, options, target);
  if (child)
    child->go();
  record::Drain drain(writer, counters.events().front().attr);
  cli::Progress progress(io.err, options.quiet);
  const Ended ended = record::watch(
      {signals, child ? &*child : nullptr, targets, counters.ring_fds(), options.duration_ns}, [&] {
        drain.pass(counters.rings());
        progress.show([&] { return "pe-record: " + plural(drain.passed().samples, "sample"); });
      });
  counters.stop();
  const double wall_seconds = static_cast<double>(record::monotonic_ns() - began_ns) * 1e-9;
  drain.finish(counters.rings());
  progress.clear();
  if (unreadable > 0)
    say(io, fmt::format("{} could not be read in /proc: their frames will have no names",
                        plural(unreadable, "process")));
  if (!options.quiet)
    say(io, closing_line(drain.passed(), own_cpu_seconds() - cpu_before, wall_seconds));
  return end_status(child ? &*child : nullptr, ended, io);
}

int work(const cli::CommandLine& line, cli::Io& io) {
  return record_target(record::read_options(line), io);
}

}  // namespace

const cli::Tool kPeRecord{
    .name = "pe-record",
    .synopsis = "[OPTION]... [-p PID | -t TID | -a | --cgroup PATH | [--] COMMAND...]",
    .summary = "Sample the call chains of running programs into a sample stream.",
    .add_options = record::add_options,
    .work = work,
    .runs_command = true,
};

int pe_record_main(std::span<const std::string> args, cli::Io& io) {
  return cli::run(kPeRecord, args, io);
}

}  // namespace pe

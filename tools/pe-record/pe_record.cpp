// SPDX-License-Identifier: MIT
#include "pe-record/pe_record.h"

#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>

#include "base/error.h"
#include "base/plural.h"
#include "base/quote.h"
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
  io.err.write("pe-record: " + printable(what) + "\n");
  io.err.flush();
}

bool writes_file(const Options& options) {
  return !options.output.empty() && options.output != "-";
}

/// Each once; a thread of a process that is recorded as a whole is part of it.
void check_targets(Options& options) {
  const auto keep_once = [](auto& list) {
    std::sort(list.begin(), list.end());
    list.erase(std::unique(list.begin(), list.end()), list.end());
  };
  keep_once(options.pids);
  keep_once(options.tids);
  keep_once(options.cpus);
  for (const pid_t pid : options.pids)
    if (const auto status = proc::status_of(pid); status && status->pid != pid)
      throw Error(fmt::format("--pid: {} is a thread of process {}: see --tid", pid, status->pid));
  std::erase_if(options.tids, [&](pid_t tid) {
    const auto status = proc::status_of(tid);
    return status && std::binary_search(options.pids.begin(), options.pids.end(), status->pid);
  });
}

/// `child` is the command, if there is one.
record::Target find_target(const Options& options, const cli::Child* child) {
  if (options.records_command)
    return {.processes = {child->pid()}, .threads = {}, .is_command = true};
  return {.processes = options.pids, .threads = options.tids, .is_command = false};
}

void write_head(record::RecordedStream& stream, const Counters& counters) {
  perf::StreamWriter& writer = stream.writer();
  writer.write_header();
  for (const auto& event : counters.events()) {
    // An attr record holds some 8,000 ids.  Where there is one event, its readers do not look at
    // them.
    constexpr std::size_t kMaxIds = 7'500;
    if (counters.events().size() > 1 && event.ids.size() > kMaxIds)
      throw Error(fmt::format(
          "--event: {} counters are too many to tell several events apart: record one at a time",
          event.ids.size()));
    const std::span ids(event.ids);
    writer.write_attr(stream.stated(event.attr), ids.first(std::min(ids.size(), kMaxIds)));
    if (!event.ids.empty())
      writer.write_event_name(event.ids.front(), event.name);
  }
}

/// What was lost, and the mark of a whole stream; returns what the counters say they have lost.
std::uint64_t write_tail(record::RecordedStream& stream, const Counters& counters) {
  perf::StreamWriter& writer = stream.writer();
  std::uint64_t all_lost = 0;
  for (std::size_t i = 0; i < counters.events().size(); ++i) {
    const auto& event = counters.events()[i];
    const std::uint64_t lost = counters.lost(i).value_or(0);
    if (lost > 0 && !event.ids.empty())
      writer.write_lost_samples(event.attr, event.ids.front(), lost);
    all_lost += lost;
  }
  writer.write_finished_round();
  writer.flush();
  return all_lost;
}

/// What was running before; returns the processes that could not be read.
std::vector<pid_t> write_running(record::RecordedStream& stream, const Counters& counters,
                                 const Options& options, const record::Target& target) {
  record::Synthesizer synthesizer(stream, counters.events().front().attr);
  synthesizer.kernel();
  std::vector<pid_t> processes = target.processes;
  if (target.is_command)
    return {};  // everything of it will be recorded
  if (options.all_processes || !options.cgroup.empty())
    processes = proc::all_processes();
  for (const pid_t tid : target.threads)
    if (const auto status = proc::status_of(tid))
      processes.push_back(status->pid);
  std::sort(processes.begin(), processes.end());
  processes.erase(std::unique(processes.begin(), processes.end()), processes.end());
  for (const pid_t pid : processes)
    synthesizer.process(pid);
  stream.writer().flush();
  return synthesizer.unreadable_processes();
}

std::string closing_line(const record::Passed& passed, const record::RecordedStream& stream,
                         double cpu_seconds, double wall_seconds) {
  std::string line =
      fmt::format("{}, {} lost, {} seen; own CPU {:.3f} s, {:.2f} % of {:.2f} s",
                  plural(passed.samples, "sample"), passed.lost.count(),
                  plural(passed.threads.size(), "thread"), cpu_seconds,
                  wall_seconds > 0 ? 100 * cpu_seconds / wall_seconds : 0.0, wall_seconds);
  if (passed.throttled > 0)
    line += fmt::format("; throttled {}", plural(passed.throttled, "time"));
  if (const auto* unwinder = stream.unwinder())
    if (const std::string stacks = stacks::describe(unwinder->counts()); !stacks.empty())
      line += "; " + stacks;
  return line;
}

/// "; 2 binary files kept in ~/.debug", or nothing, for the closing line.
std::string finish_keeping(record::RecordedStream& stream) {
  const std::string kept = stream.keeper() != nullptr ? stream.keeper()->finish() : "";
  return kept.empty() ? "" : fmt::format("; {}", kept);
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
  if (!writes_file(options) && io.out.is_terminal())
    throw UsageError(
        "the stream is binary: pipe it into pe-symbolize, or name a file with --output");
  cli::StopSignals signals;
  std::optional<cli::Child> child;
  if (!options.command.empty())
    child.emplace(cli::Child::start(options.command, writes_file(options) ? -1 : STDERR_FILENO));
  const record::Target target = find_target(options, child ? &*child : nullptr);
  record::TargetWatch targets(child ? std::vector<pid_t>{} : target.processes, target.threads);
  const double cpu_before = own_cpu_seconds();
  Counters counters(options, target);
  // Only now: a recording that cannot be made must not cost an older one its file.
  std::optional<io::FileOutput> file;
  if (writes_file(options))
    file.emplace(options.output);
  io::Output& out = file ? *file : io.out;
  for (const std::string& note : counters.notes())
    if (!options.quiet)
      say(io, note);
  perf::StreamWriter writer(out);
  const perf_event_attr& attr = counters.events().front().attr;
  record::RecordedStream stream(writer, attr, options);
  write_head(stream, counters);
  // From here on the kernel keeps everything that happens; what was before is read now.
  const std::uint64_t began_ns = record::monotonic_ns();
  counters.start();
  const std::vector<pid_t> unreadable = write_running(stream, counters, options, target);
  if (child)
    child->go();
  record::Drain drain(stream, attr);
  cli::Progress progress(io.err, options.quiet);
  const record::WatchRequest request{.signals = signals,
                                     .child = child ? &*child : nullptr,
                                     .targets = targets,
                                     .ring_fds = counters.ring_fds(),
                                     .reader_fd = out.fd(),
                                     .duration_ns = options.duration_ns};
  const Ended ended = record::watch(request, [&] {
    drain.pass(counters.rings());
    progress.show([&] { return "pe-record: " + plural(drain.passed().samples, "sample"); });
    return drain.urgency_ns();
  });
  if (ended == Ended::kReaderGone)
    throw BrokenPipe("stdout");
  counters.stop();
  const double wall_seconds = static_cast<double>(record::monotonic_ns() - began_ns) * 1e-9;
  drain.finish(counters.rings());
  record::Passed passed = drain.passed();
  passed.lost.add_counted(write_tail(stream, counters));
  const std::string kept = finish_keeping(stream);
  progress.clear();
  if (!unreadable.empty())
    say(io, fmt::format("{} could not be read in /proc (the first: {}): no names for their frames",
                        plural(unreadable.size(), "process"), unreadable.front()));
  if (!options.quiet)
    say(io, closing_line(passed, stream, own_cpu_seconds() - cpu_before, wall_seconds) + kept);
  return end_status(child ? &*child : nullptr, ended, io);
}

int work(const cli::CommandLine& line, cli::Io& io) {
  Options options = record::read_options(line);
  check_targets(options);
  return record_target(options, io);
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

// SPDX-License-Identifier: MIT
#include "pe-record/pe_record.h"

#include <fmt/format.h>
#include <unistd.h>

#include <optional>
#include <vector>

#include "base/error.h"
#include "base/plural.h"
#include "base/quote.h"
#include "cli/child.h"
#include "cli/progress.h"
#include "cli/stop_signals.h"
#include "pe-record/options.h"
#include "recording/counters.h"
#include "recording/drain.h"
#include "recording/own_cost.h"
#include "recording/target_options.h"
#include "recording/watch.h"
#include "recording/whole_stream.h"

namespace pe {
namespace {

using record::Options;
using recording::Counters;
using recording::Ended;

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

/// "; 2 binary files kept in ~/.debug", or nothing, for the closing line.
std::string finish_keeping(recording::RecordedStream& stream) {
  const std::string kept = stream.keeper() != nullptr ? stream.keeper()->finish() : "";
  return kept.empty() ? "" : fmt::format("; {}", kept);
}

int record_target(Options& options, cli::Io& io) {
  if (!writes_file(options) && io.out.is_terminal())
    throw UsageError(
        "the stream is binary: pipe it into pe-symbolize, or name a file with --output");
  cli::StopSignals signals;
  std::optional<cli::Child> child;
  if (!options.command.empty())
    child.emplace(cli::Child::start(options.command, writes_file(options) ? -1 : STDERR_FILENO));
  recording::Target& target = options.target;
  if (target.is_command)
    target.processes = {child->pid()};
  recording::TargetWatch targets(child ? std::vector<pid_t>{} : target.processes, target.threads);
  recording::OwnCost cost;
  Counters counters(options.request, target);
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
  recording::RecordedStream stream(writer, attr, options.request);
  write_head(stream, counters);
  // From here on the kernel keeps everything that happens; what was before is read now.
  cost.begin_wall();
  counters.start();
  const std::vector<pid_t> unreadable = write_running(stream, counters, target);
  if (child)
    child->go();
  recording::Drain drain(stream, attr);
  cli::Progress progress(io.err, options.quiet);
  const recording::WatchRequest request{.signals = signals,
                                        .child = child ? &*child : nullptr,
                                        .targets = targets,
                                        .ring_fds = counters.ring_fds(),
                                        .reader_fd = out.fd(),
                                        .duration_ns = options.duration_ns};
  const Ended ended = recording::watch(request, [&] {
    drain.pass(counters.rings());
    progress.show([&] { return "pe-record: " + plural(drain.passed().samples, "sample"); });
    return drain.urgency_ns();
  });
  if (ended == Ended::kReaderGone)
    throw BrokenPipe("stdout");
  counters.stop();
  cost.end_wall();
  drain.finish(counters.rings());
  recording::Passed passed = drain.passed();
  passed.lost.add_counted(write_tail(stream, counters));
  const std::string kept = finish_keeping(stream);
  progress.clear();
  if (!unreadable.empty())
    say(io, recording::describe_unreadable(unreadable));
  if (!options.quiet)
    say(io, closing_line(passed, stream, cost) + kept);
  return recording::end_status(child ? &*child : nullptr, ended,
                               [&io](const std::string& what) { say(io, what); });
}

int work(const cli::CommandLine& line, cli::Io& io) {
  Options options = record::read_options(line);
  recording::tidy(options.target);
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

// SPDX-License-Identifier: MIT
#include "offcpu/offcpu.h"

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
#include "offcpu/engine.h"
#include "offcpu/options.h"
#include "recording/own_cost.h"
#include "recording/target_options.h"
#include "recording/watch.h"

namespace pe {
namespace {

using offcpu::Engine;
using offcpu::Options;
using recording::Ended;

void say(cli::Io& io, const std::string& what) {
  io.err.write("offcpu: " + printable(what) + "\n");
  io.err.flush();
}

bool writes_file(const Options& options) {
  return !options.output.empty() && options.output != "-";
}

std::string closing_line(Engine& engine, const recording::OwnCost& cost) {
  const offcpu::WaitCounts& counts = engine.counts();
  constexpr double kNanosecond = 1e-9;
  std::string line =
      fmt::format("{}, {:.3f} s in all, {} lost, {} seen; {}", plural(counts.waits, "wait"),
                  static_cast<double>(counts.total_ns) * kNanosecond, engine.lost(),
                  plural(engine.threads(), "thread"), cost.describe());
  const auto add = [&line](std::uint64_t count, std::string_view what) {
    if (count > 0)
      line += fmt::format("; {} {}", count, what);
  };
  add(counts.unfinished, "still waiting");
  add(counts.began_before, "that had begun before left out");
  add(counts.stackless, "without a stack");
  add(counts.stateless, "left out whose state was lost");
  add(counts.dropped, "dropped where records were lost");
  return line + engine.remarks();
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
  const auto note = [&](const std::string& what) {
    if (!options.quiet)
      say(io, what);
  };
  const auto engine = make_engine(options, target, note);
  // Only now: a recording that cannot be made must not cost an older one its file.
  std::optional<io::FileOutput> file;
  if (writes_file(options))
    file.emplace(options.output);
  io::Output& out = file ? *file : io.out;
  for (const std::string& what : engine->notes())
    note(what);
  cost.begin_wall();
  engine->begin(out);
  if (child)
    child->go();
  cli::Progress progress(io.err, options.quiet);
  const recording::WatchRequest request{.signals = signals,
                                        .child = child ? &*child : nullptr,
                                        .targets = targets,
                                        .ring_fds = engine->fds(),
                                        .reader_fd = out.fd(),
                                        .duration_ns = options.duration_ns};
  const Ended ended = recording::watch(request, [&] {
    const auto urgency_ns = engine->pass();
    progress.show([&] { return "offcpu: " + plural(engine->counts().waits, "wait"); });
    return urgency_ns;
  });
  if (ended == Ended::kReaderGone)
    throw BrokenPipe("stdout");
  engine->stop();
  cost.end_wall();
  engine->finish();
  const std::string closing = closing_line(*engine, cost);
  progress.clear();
  if (const std::string problem = engine->problem(); !problem.empty())
    say(io, problem);
  if (!options.quiet)
    say(io, closing);
  return recording::end_status(child ? &*child : nullptr, ended,
                               [&io](const std::string& what) { say(io, what); });
}

int work(const cli::CommandLine& line, cli::Io& io) {
  Options options = offcpu::read_options(line);
  recording::tidy(options.target);
  return record_target(options, io);
}

}  // namespace

const cli::Tool kOffcpu{
    .name = "offcpu",
    .synopsis = "[OPTION]... [-p PID | -t TID | -a | --cgroup PATH] [[--] COMMAND...]",
    .summary = "Record where threads wait, and for how long, into a sample stream.",
    .add_options = offcpu::add_options,
    .work = work,
    .runs_command = true,
};

int offcpu_main(std::span<const std::string> args, cli::Io& io) {
  return cli::run(kOffcpu, args, io);
}

}  // namespace pe

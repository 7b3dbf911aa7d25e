// SPDX-License-Identifier: MIT
#include "pe-record/pe_record.h"

#include <fmt/format.h>

#include <memory>
#include <string>

#include "base/error.h"
#include "pe-record/check.h"
#include "pe-record/kernel_recording.h"
#include "pe-record/options.h"
#include "pe-record/output.h"
#include "pe-record/taken_recording.h"
#include "recording/target_options.h"

namespace pe {
namespace {

using record::KernelRecording;
using record::Options;
using record::TakenRecording;
using recording::Engine;

/// By counters, or where these are refused and the choice is ours, by the next engine.
int record_somehow(Options& options, cli::Io& io) {
  std::unique_ptr<KernelRecording> by_counters;
  std::string why_not;
  try {
    by_counters = std::make_unique<KernelRecording>(options, io);
  } catch (const recording::PerfRefused& refused) {
    if (options.request.engine != Engine::kAuto || !options.not_by_ptrace.empty())
      throw;
    why_not = refused.what();
  }
  if (by_counters)
    return by_counters->run();
  options.request.engine = Engine::kPtrace;
  const auto by_ptrace = [&] {
    try {
      return std::make_unique<TakenRecording>(options, io);
    } catch (const recording::SourceRefused& refused) {
      throw Error(fmt::format("{}; nor by {}", why_not, refused.what()));
    }
  }();
  if (!options.quiet)
    record::say(io, fmt::format("engine ptrace, which stops the target's threads: {}", why_not));
  return by_ptrace->run();
}

int work(const cli::CommandLine& line, cli::Io& io) {
  if (line.has("check"))
    return record::check(line, io);
  Options options = record::read_options(line);
  recording::tidy(options.target);
  if (!writes_file(options) && io.out.is_terminal())
    throw UsageError(
        "the stream is binary: pipe it into pe-symbolize, or name a file with --output");
  if (options.request.engine == Engine::kPtrace)
    return TakenRecording(options, io).run();
  return record_somehow(options, io);
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

// SPDX-License-Identifier: MIT
#include "pe-record/pe_record.h"

#include <fmt/format.h>

#include <memory>
#include <string>
#include <utility>

#include "base/error.h"
#include "pe-record/check.h"
#include "pe-record/kernel_recording.h"
#include "pe-record/options.h"
#include "pe-record/output.h"
#include "pe-record/taken_recording.h"
#include "record/target_options.h"

namespace pe {
namespace {

using record::Engine;
using recorder::KernelRecording;
using recorder::Options;
using recorder::TakenRecording;

/// What is said of an engine that is taken in place of counters.
constexpr const char* kBySignal = "engine signal, by which the command samples itself";
constexpr const char* kByPtrace = "engine ptrace, which stops the target's threads";

std::unique_ptr<TakenRecording> take_by(Engine engine, Options& options, Io& io,
                                        std::string& why_not) {
  const std::string& problem =
      engine == Engine::kSignal ? options.not_by_signal : options.not_by_ptrace;
  if (!problem.empty())
    return nullptr;
  options.request.engine = engine;
  try {
    return std::make_unique<TakenRecording>(options, io);
  } catch (const record::SourceRefused& refused) {
    why_not += fmt::format("; nor by {}", refused.what());
  }
  return nullptr;
}

/// Without counters.  A command samples itself: that disturbs it least, leaves the programs that it
/// starts their rights and debuggers, and shows every CPU's time as it is, also in virtual machines
/// (CAVEATS in the manual page).  All else is stopped from outside.
std::unique_ptr<TakenRecording> record_without_counters(Options& options, Io& io,
                                                        std::string why_not) {
  for (const Engine engine : {Engine::kSignal, Engine::kPtrace}) {
    auto taken = take_by(engine, options, io, why_not);
    if (taken && !options.quiet)
      recorder::say(
          io, fmt::format("{}: {}", engine == Engine::kSignal ? kBySignal : kByPtrace, why_not));
    if (taken)
      return taken;
  }
  throw Error(why_not);
}

/// By counters, or where these are refused and the choice is ours, by the next engine.
int record_somehow(Options& options, Io& io) {
  if (options.request.clock == record::Clock::kWall)
    return record_without_counters(options, io, "counters do not count the time of --clock wall")
        ->run();
  std::unique_ptr<KernelRecording> by_counters;
  std::string why_not;
  try {
    by_counters = std::make_unique<KernelRecording>(options, io);
  } catch (const record::PerfRefused& refused) {
    if (options.request.engine != Engine::kAuto)
      throw;
    why_not = refused.what();
  }
  return by_counters ? by_counters->run()
                     : record_without_counters(options, io, std::move(why_not))->run();
}

int work(const CommandLine& line, Io& io) {
  if (line.has("check"))
    return recorder::check(line, io);
  Options options = recorder::read_options(line);
  record::tidy(options.target);
  if (!writes_file(options) && io.out.is_terminal())
    throw UsageError(
        "the stream is binary: pipe it into pe-symbolize, or name a file with --output");
  if (options.request.engine == Engine::kPtrace || options.request.engine == Engine::kSignal)
    return TakenRecording(options, io).run();
  return record_somehow(options, io);
}

}  // namespace

const Tool kPeRecord{
    .name = "pe-record",
    .synopsis = "[OPTION]... [-p PID | -t TID | -a | --cgroup PATH] [[--] COMMAND...]",
    .summary = "Sample the call chains of running programs into a sample stream.",
    .add_options = recorder::add_options,
    .work = work,
    .runs_command = true,
};

int pe_record_main(std::span<const std::string> args, Io& io) { return run(kPeRecord, args, io); }

}  // namespace pe

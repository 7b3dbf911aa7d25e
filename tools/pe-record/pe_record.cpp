// SPDX-License-Identifier: MIT
#include "pe-record/pe_record.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "languages/registry.h"
#include "pe-record/check.h"
#include "pe-record/counter_source.h"
#include "pe-record/engine_source.h"
#include "pe-record/options.h"
#include "recording/inprocess/command.h"
#include "recording/probes/fields.h"
#include "recording/probes/list.h"
#include "recording/probes/resolve.h"
#include "recording/probes/spans.h"
#include "recording/refused.h"
#include "recording/session.h"
#include "recording/target_options.h"
#include "stream/proc/maps.h"

namespace pe {
namespace {

using recorder::Options;
using recording::Engine;

constexpr const char* kBySignal = "using the signal engine, with which the command samples itself";
constexpr const char* kByPtrace = "using the ptrace engine, which stops the target's threads";
constexpr const char* kByPerf = "using the perf engine, which copies a stack at each hit";
constexpr const char* kWithoutScripts =
    "using the perf engine, which cannot read an interpreter's frames";

const char* how(Engine engine, const Options& options) {
  if (engine == Engine::kSignal)
    return kBySignal;
  if (engine == Engine::kPtrace)
    return kByPtrace;
  return options.has_events_for_bpf ? kByPerf : kWithoutScripts;
}

bool has_counters(Engine engine) { return engine != Engine::kSignal && engine != Engine::kPtrace; }

/// Whether the command, or a process that is recorded, has an interpreter, by the names of files.
bool has_interpreter(const Options& options) {
  bool found = false;
  const auto look = [&](const stream::MapsLine& map) {
    found = found || languages::may_be_interpreter(map.path);
  };
  for (const auto* list : {&options.target.processes, &options.target.threads})
    for (const pid_t id : *list)
      stream::for_each_mapping(id, look);
  if (options.command.empty())
    return found;
  return std::ranges::any_of(inprocess::programs_of_command(options.command.front()),
                             languages::may_be_interpreter);
}

/// The engines to try, in this order.  The frames of interpreters must be read at the moment of a
/// sample, as all engines but perf do.  Without counters a command samples itself: that disturbs it
/// least, leaves the programs that it starts their privileges and debuggers, and shows every CPU's
/// time as it is, also in virtual machines (CAVEATS in the manual page).  All else is stopped from
/// outside.
std::vector<Engine> engines_for(const Options& options) {
  if (options.request.engine != Engine::kAuto)
    return {options.request.engine};
  std::vector<Engine> engines;
  const bool is_script = has_interpreter(options);
  const bool is_by_cpu = options.request.clock != recording::Clock::kWall;
  if (is_by_cpu && options.not_by_bpf.empty() && (options.has_events_for_bpf || is_script))
    engines.push_back(Engine::kBpf);
  if (is_script && options.not_by_signal.empty())
    engines.push_back(Engine::kSignal);
  if (is_script && !options.target.is_command && options.not_by_ptrace.empty())
    engines.push_back(Engine::kPtrace);
  if (is_by_cpu)
    engines.push_back(Engine::kAuto);
  if (options.not_by_signal.empty() && !is_script)
    engines.push_back(Engine::kSignal);
  if (options.not_by_ptrace.empty() && std::ranges::find(engines, Engine::kPtrace) == engines.end())
    engines.push_back(Engine::kPtrace);
  return engines;
}

/// A session and its source, or why the engine cannot work here.
struct Opened {
  std::unique_ptr<recording::Session> session;
  std::unique_ptr<recording::Source> source;
  std::string why_not;
};

Opened open_engine(const Options& options, Io& io) {
  Opened opened;
  opened.session = std::make_unique<recording::Session>("pe-record", options, io);
  try {
    if (has_counters(options.request.engine))
      opened.source = std::make_unique<recorder::CounterSource>(options, *opened.session);
    else
      opened.source = std::make_unique<recorder::EngineSource>(options, *opened.session);
  } catch (const recording::Refused& refused) {
    opened.why_not = refused.what();
  }
  return opened;
}

int work(const CommandLine& line, Io& io) {
  if (line.has("check"))
    return recorder::check(line, io);
  if (line.has("list"))
    return recorder::list_events(line, io);
  Options options = recorder::read_options(line);
  recording::tidy(options.target);
  recording::check_output(options, io);
  recorder::resolve_probes(options.request, options.target, options.command);
  options.request.spans = recorder::resolve_spans(options.spans, options.target, options.command);
  recorder::resolve_fields(options.request, options.weights);
  // These come in bursts: a small copy leaves room for many more in the rings, and is continued.
  constexpr std::uint32_t kSmallCopy = 8192;
  if (!options.request.each_pass.empty() && !options.request.stack_bytes)
    options.request.stack_bytes = kSmallCopy;
  const bool needs_other =
      options.request.engine == Engine::kAuto && options.request.clock == recording::Clock::kWall;
  std::string why_not = needs_other ? "counters do not measure wall time (--clock wall)" : "";
  for (const Engine engine : engines_for(options)) {
    options.request.engine = engine;
    const Opened opened = open_engine(options, io);
    if (opened.source) {
      if (!why_not.empty() && engine != Engine::kBpf)
        opened.session->note(fmt::format("{}: {}", how(engine, options), why_not));
      return opened.session->run(*opened.source);
    }
    why_not += (why_not.empty() ? "" : "; nor by ") + opened.why_not;
  }
  throw Error(why_not);
}

}  // namespace

const Tool kPeRecord{
    .name = "pe-record",
    .synopsis = "[OPTION]... [-p PID | -t TID | -a | --cgroup PATH] [[--] COMMAND...]",
    .summary = "Sample the call stacks of running programs into a sample stream.",
    .add_options = recorder::add_options,
    .work = work,
    .runs_command = true,
};

}  // namespace pe

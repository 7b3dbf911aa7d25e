// SPDX-License-Identifier: MIT
#include "pe-record/pe_record.h"

#include <fmt/format.h>

#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "languages/registry.h"
#include "pe-record/check.h"
#include "pe-record/counter_source.h"
#include "pe-record/engine_source.h"
#include "pe-record/engines.h"
#include "pe-record/options.h"
#include "recording/probes/function_exits.h"
#include "recording/probes/list.h"
#include "recording/probes/resolve.h"
#include "recording/refused.h"
#include "recording/request.h"
#include "recording/session.h"
#include "recording/target_options.h"
#include "recording/waits/wait_source.h"

namespace pe {
namespace {

using recorder::Options;
using recording::Engine;

bool has_counters(Engine engine) { return engine != Engine::kSignal && engine != Engine::kPtrace; }

/// A session and its source, or why the engine cannot work here.
struct Opened {
  std::unique_ptr<recording::Session> session;
  std::unique_ptr<recording::Source> source;
  std::string why_not;
  recording::Refusal refusal;
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
    opened.refusal = refused.refusal();
  }
  return opened;
}

/// Records samples of CPU time and waits.
int record_with_waits(Options& options, Io& io) {
  using waits::EngineChoice;
  if (!options.target.threads.empty() && !options.target.processes.empty())
    throw UsageError("--event waits: --pid and --tid of another process: cannot be combined");
  options.request.spans = recorder::resolve_spans(options.spans, options.target, options.command);
  const waits::Options choice{.request = options.request,
                              .choice = {.with_preempted = true,
                                         .with_wakers = options.with_wakers,
                                         .with_locks = options.with_locks,
                                         .blame = waits::Blame::kWaiter},
                              .with_cpu = true,
                              .engine = options.request.engine == Engine::kBpf ? EngineChoice::kBpf
                                        : options.request.engine == Engine::kPerf
                                            ? EngineChoice::kPerf
                                            : EngineChoice::kAuto};
  recording::Session session("pe-record", options, io);
  waits::WaitSource source(choice, session);
  return session.run(source);
}

int record(Options& options, Io& io) {
  recording::tidy(options.target);
  recording::check_output(options, io);
  if (options.with_waits)
    return record_with_waits(options, io);
  recorder::resolve_probes(options.request, options.target, options.command);
  options.request.spans = recorder::resolve_spans(options.spans, options.target, options.command);
  recorder::resolve_fields(options.request, options.weights);
  // These come in bursts: a small copy leaves room for many more in the rings, and is continued.
  constexpr std::uint32_t kSmallCopy = 8192;
  if (!options.request.each_pass.empty() && !options.request.stack_bytes)
    options.request.stack_bytes = kSmallCopy;
  const recorder::Candidates candidates = recorder::candidates_for(options);
  const bool is_wall = options.request.clock == recording::Clock::kWall;
  const bool was_requested = candidates.engines.front() == options.request.engine;
  std::string why_not =
      is_wall && !was_requested ? "counters do not measure wall time (--clock wall)" : "";
  recording::Refusal refusal;
  for (const Engine engine : candidates.engines) {
    options.request.engine = engine;
    const Opened opened = open_engine(options, io);
    if (opened.source) {
      if (!why_not.empty() && engine != Engine::kBpf)
        opened.session->note(recorder::describe_choice(engine, options, why_not));
      return opened.session->run(*opened.source);
    }
    if (candidates.may_lack_first && engine == candidates.engines.front())
      continue;
    why_not += (why_not.empty() ? "" : "; nor by ") + opened.why_not;
    refusal |= opened.refusal;
  }
  throw recording::Refused(why_not, refusal);
}

int work(const CommandLine& line, Io& io) {
  if (line.has("check"))
    return recorder::check(line, io);
  if (line.has("list"))
    return recorder::list_events(line, io);
  Options options = recorder::read_options(line);
  return recording::with_summary(options.summary_fd, io, [&] { return record(options, io); });
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

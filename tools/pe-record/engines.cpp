// SPDX-License-Identifier: MIT
#include "pe-record/engines.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <iterator>
#include <optional>

#include "base/error.h"
#include "languages/common/script_reader.h"
#include "recording/counters/event_name.h"
#include "recording/inprocess/command.h"
#include "recording/parts.h"
#include "recording/probes/probe_name.h"
#include "recording/ptrace/ptrace_refusal.h"
#include "stream/proc/maps.h"
#include "stream/proc/own_rights.h"

namespace pe::recorder {
namespace {

using recording::CallGraph;
using recording::Engine;
using recording::Part;

bool has_probes(const recording::Request& request) {
  return std::ranges::any_of(request.events, [](const auto& e) { return recording::is_probe(e); });
}

/// Returns what keeps the engine bpf from probes; empty if nothing does.  Its program runs for all
/// threads on all CPUs.
std::string problem_of_probes_by_bpf(const Options& options) {
  if (!options.target.threads.empty() || !options.target.cgroup.empty() ||
      !options.target.cpus.empty())
    return "records probes of whole processes only: it does not support --tid, --cgroup, --cpu";
  if (options.request.period || options.request.frequency_was_given)
    return "records every hit of a probe: it does not support --count, --freq";
  return {};
}

std::string problem_of_bpf(const CommandLine& line, const Options& options) {
  const recording::Request& request = options.request;
  std::string problem = has_probes(request) ? problem_of_probes_by_bpf(options) : "";
  if (line.has("span"))
    problem = "cannot mark calls: it does not support --span";
  for (const char* option : {"stack-size", "keep-stacks"})
    if (line.has(option))
      problem = fmt::format("copies no stacks: it does not support --{}", option);
  if (request.stack_bytes && !line.has("stack-size"))
    problem = "copies no stacks: it does not support --call-graph dwarf,BYTES";
  if (request.kernel_only)
    problem = "walks stacks of programs: it does not support --kernel-only";
  if (request.call_graph != CallGraph::kAuto && request.call_graph != CallGraph::kDwarf)
    problem = "needs --call-graph auto or dwarf";
  for (const std::string& event : request.events)
    if (recording::parse_event(event).kind == recording::EventName::Kind::kTracepoint)
      problem = fmt::format("cannot sample tracepoints: '{}'", event);
  return problem;
}

/// Returns an option that neither of the engines without counters can fulfil.
std::string problem_without_counters(const Options& options) {
  const recording::Request& request = options.request;
  for (const std::string& event : request.events)
    if (event != "cpu-clock" && event != "task-clock")
      return fmt::format("samples CPU time: it does not support --event '{}'", event);
  if (request.period)
    return "samples CPU time: it does not support --count";
  if (!options.spans.empty())
    return "cannot mark calls: it does not support --span";
  if (request.kernel_only)
    return "records no kernel stacks: it does not support --kernel-only";
  if (request.call_graph != CallGraph::kAuto && request.call_graph != CallGraph::kDwarf)
    return "needs --call-graph auto or dwarf";
  return {};
}

std::string problem_of_ptrace(const CommandLine& line, const Options& options) {
  if (options.target.is_wide() || !options.target.cpus.empty())
    return "stops single processes and threads: it does not support --all, --cpu, --cgroup";
  if (!options.request.thread_choice.empty())
    return "follows all threads: it does not support --thread";
  if (std::string problem = problem_without_counters(options); !problem.empty())
    return problem;
  if (line.has("mmap-pages") && options.request.engine == Engine::kPtrace)
    return "has no rings: it does not support --mmap-pages";
  return {};
}

std::string problem_of_signal(const CommandLine& /*line*/, const Options& options) {
  if (!options.target.is_command)
    return "samples only a command that it starts (pe-record --engine signal -- COMMAND); use "
           "--engine ptrace for running processes";
  if (!options.target.cpus.empty())
    return "samples on all CPUs: it does not support --cpu";
  return problem_without_counters(options);
}

// Why this user cannot use an engine on this machine; empty if nothing is known to prevent it.

std::string why_not_bpf(const Options& /*options*/) { return recording::why_no_bpf(); }

std::string why_not_signal(const Options& /*options*/) { return recording::why_no_signals(); }

std::string why_not_ptrace(const Options& options) {
  if (std::string why = recording::why_no_ptrace(); !why.empty())
    return why;
  const recording::Target& target = options.target;
  constexpr int kOfCommands = 1;  // a scope of 1 allows the tracing of children
  const int scope = recording::ptrace_scope();
  if (scope == 0 || stream::has_capability(stream::Capability::kSysPtrace) ||
      (scope == kOfCommands && target.is_command))
    return {};
  const auto& ids = target.processes.empty() ? target.threads : target.processes;
  return ids.empty() ? "" : recording::why_not_traced(ids.front(), EPERM);
}

/// An engine that cannot do everything.
struct Limits {
  Engine engine;
  Part part;
  /// Returns an option that it cannot fulfil; empty if it can fulfil all of them.
  std::string (*problem)(const CommandLine& line, const Options& options);
  std::string (*why_not)(const Options& options);
  bool (*works)(const recording::Abilities& found);
};

using recording::Abilities;
/// The engine perf has no limits.  This is also the order in which advice names them.
constexpr std::array kLimits = {
    Limits{Engine::kBpf, Part::kBpf, problem_of_bpf, why_not_bpf,
           [](const Abilities& found) { return found.has_bpf && found.has_perf; }},
    Limits{Engine::kSignal, Part::kSignal, problem_of_signal, why_not_signal,
           [](const Abilities& found) { return found.has_signals; }},
    Limits{Engine::kPtrace, Part::kPtrace, problem_of_ptrace, why_not_ptrace,
           [](const Abilities& found) { return found.has_ptrace; }},
};

/// The need of a recording, which decides the order of engines.
enum class Need {
  kWallTime,         ///< which counters do not measure
  kScriptOfCommand,  ///< the frames of an interpreter, which must be read at a sample's moment
  kScriptOfProcess,
  kEveryHit,  ///< of a probe: bpf copies no stack at a hit, and needs one counter for all CPUs
  kCpuTime,
  kSmallStream,  ///< CPU time: bpf copies no stacks, and walks those of any depth
};

/// Which engines to try, in this order, of those that can do what is requested.  Without counters a
/// command samples itself: that disturbs it least, leaves the programs that it starts their
/// privileges and debuggers, and shows every CPU's time as it is, also in virtual machines (CAVEATS
/// in the manual page).  All else is stopped from outside.
struct Order {
  Need need;
  std::array<Engine, 4> engines;
};
constexpr Engine kEnd = Engine::kAuto;
constexpr std::array kOrders = {
    Order{Need::kWallTime, {Engine::kSignal, Engine::kPtrace, kEnd}},
    Order{Need::kScriptOfCommand, {Engine::kBpf, Engine::kSignal, Engine::kPerf, Engine::kPtrace}},
    Order{Need::kScriptOfProcess, {Engine::kBpf, Engine::kPtrace, Engine::kPerf, kEnd}},
    Order{Need::kEveryHit, {Engine::kBpf, Engine::kPerf, Engine::kSignal, Engine::kPtrace}},
    Order{Need::kCpuTime, {Engine::kPerf, Engine::kSignal, Engine::kPtrace, kEnd}},
    Order{Need::kSmallStream, {Engine::kBpf, Engine::kPerf, Engine::kSignal, Engine::kPtrace}},
};

const std::array<Engine, 4>& order_for(Need need) {
  return std::ranges::find(kOrders, need, &Order::need)->engines;
}

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

bool needs_every_hit(const recording::Request& request) {
  return has_probes(request) || request.each_pass.contains("page-faults");
}

Need need_of(const Options& options) {
  if (options.request.clock == recording::Clock::kWall)
    return Need::kWallTime;
  if (has_interpreter(options))
    return options.target.is_command ? Need::kScriptOfCommand : Need::kScriptOfProcess;
  if (needs_every_hit(options.request))
    return Need::kEveryHit;
  return options.request.engine == Engine::kBest ? Need::kSmallStream : Need::kCpuTime;
}

bool is_chosen_here(Engine engine) { return engine == Engine::kAuto || engine == Engine::kBest; }

/// Counters cannot count wall time.  The other engines can, and auto chooses one of them.
void check_wall(const Options& options) {
  const Engine engine = options.request.engine;
  if (options.request.clock != recording::Clock::kWall)
    return;
  if (engine == Engine::kPerf || engine == Engine::kBpf)
    throw UsageError("--clock wall needs --engine signal or ptrace");
  if (!is_chosen_here(engine) || options.can_use(Engine::kSignal))
    return;
  recording::require(Part::kPtrace);
  if (!options.can_use(Engine::kPtrace))
    throw UsageError("--clock wall needs --engine signal or ptrace, which " +
                     options.not_by.at(Engine::kPtrace));
}

std::string fix_of_scripts(const Options& options) {
  std::map<Engine, std::string> why_not;
  for (const Limits& limits : kLimits) {
    why_not[limits.engine] = options.can_use(limits.engine) ? limits.why_not(options) : "";
    if (options.can_use(limits.engine) && why_not[limits.engine].empty())
      return fmt::format("use --engine {}", name_of(limits.engine));
  }
  const std::string for_bpf =
      recording::why_left_out(Part::kBpf).empty()
          ? "--engine bpf " + (options.can_use(Engine::kBpf) ? why_not[Engine::kBpf]
                                                             : options.not_by.at(Engine::kBpf))
          : recording::why_left_out(Part::kBpf);
  if (options.can_use(Engine::kPtrace))
    return fmt::format("{}; --engine ptrace: {}", for_bpf, why_not[Engine::kPtrace]);
  if (options.can_use(Engine::kBpf) || !recording::why_left_out(Part::kPtrace).empty())
    return for_bpf;
  return fmt::format("{}; --engine ptrace {}", for_bpf, options.not_by.at(Engine::kPtrace));
}

}  // namespace

void check_engine(const CommandLine& line, Options& options) {
  for (const auto& [engine, part, problem, why_not, works] : kLimits) {
    if (options.request.engine == engine)
      recording::require(part);
    std::string why = recording::why_left_out(part);
    if (why.empty())
      why = problem(line, options);
    if (options.request.engine == engine && !why.empty())
      throw UsageError(fmt::format("--engine {} {}", name_of(engine), why));
    if (!why.empty())
      options.not_by[engine] = std::move(why);
  }
  check_wall(options);
}

Candidates candidates_for(const Options& options) {
  if (!is_chosen_here(options.request.engine))
    return {.engines = {options.request.engine}};
  const Need need = need_of(options);
  Candidates candidates;
  for (const Engine engine : order_for(need))
    if (engine != kEnd && options.can_use(engine))
      candidates.engines.push_back(engine);
  candidates.may_lack_first = need == Need::kSmallStream && options.can_use(Engine::kBpf);
  return candidates;
}

std::string_view name_of(Engine engine) {
  return std::ranges::find(kEngines, engine, &Choice<Engine>::value)->name;
}

std::string describe_choice(Engine engine, const Options& options, std::string_view why) {
  switch (engine) {
    case Engine::kSignal:
      return fmt::format("using the signal engine, with which the command samples itself: {}", why);
    case Engine::kPtrace:
      return fmt::format("using the ptrace engine, which stops the target's threads: {}", why);
    default:
      return needs_every_hit(options.request)
                 ? fmt::format("using the perf engine, which copies a stack at each hit: {}", why)
                 : fmt::format(
                       "using the perf engine, which cannot read an interpreter's frames: {}", why);
  }
}

std::string describe_interpreters(const recording::Abilities& found) {
  std::string engines;
  for (const Limits& limits : kLimits)
    if (limits.works(found))
      engines += fmt::format("{}{}", engines.empty() ? "" : ", ", name_of(limits.engine));
  return engines.empty()
             ? "no          --engine perf cannot read interpreters"
             : fmt::format("yes         by {}; --engine perf cannot read interpreters", engines);
}

std::string describe_default(Engine choice, const recording::Abilities& found) {
  const auto first = [&](bool of_command) -> std::string_view {
    for (const Engine engine :
         order_for(choice == Engine::kBest ? Need::kSmallStream : Need::kCpuTime)) {
      const auto limits = std::ranges::find(kLimits, engine, &Limits::engine);
      const bool works = limits == kLimits.end() ? found.has_perf : limits->works(found);
      if (engine != kEnd && works && (of_command || engine != Engine::kSignal))
        return name_of(engine);
    }
    return "none";
  };
  const std::string_view of_command = first(true), of_process = first(false);
  if (of_command == of_process)
    return std::string(of_command);
  return fmt::format("{:<12}for a command; for running processes: {}", of_command, of_process);
}

EngineAdvice::EngineAdvice(const Options& options)
    : may_use_bpf(options.can_use(Engine::kBpf) && why_not_bpf(options).empty()),
      if_scripts(fix_of_scripts(options)) {}

std::string if_cut(const recording::Request& request, std::uint64_t cut_bytes,
                   const EngineAdvice& advice) {
  if (request.engine == Engine::kBpf)
    return "copies cannot be larger";
  // The head of a record takes a part of the largest copy.
  constexpr std::uint64_t kMostOfHead = 1024;
  if (cut_bytes + kMostOfHead >= recording::kMaxStackBytes) {
    if (!request.may_continue)
      return "leave out --no-continue";
    return advice.may_use_bpf ? "copies cannot be larger: use --engine bpf, which needs none"
                              : "copies cannot be larger";
  }
  constexpr std::uint64_t kCopiesOfRing = 4;  // those for which a thread's ring has room
  const std::uint64_t ring_bytes =
      request.ring_pages.value_or(0) * static_cast<std::uint64_t>(::getpagesize());
  const bool is_of_ring = request.engine == Engine::kSignal
                              ? request.ring_pages && cut_bytes + 8 > ring_bytes / kCopiesOfRing
                              : !request.stack_bytes;
  return is_of_ring ? "raise --mmap-pages, or ulimit -l" : "raise --stack-size";
}

}  // namespace pe::recorder

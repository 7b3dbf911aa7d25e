// SPDX-License-Identifier: MIT
#include "pe-record/options.h"

#include <fmt/format.h>
#include <unistd.h>
#include <boost/program_options/options_description.hpp>
#include <boost/program_options/value_semantic.hpp>

#include <algorithm>

#include "base/cli/command_line.h"
#include "base/error.h"
#include "base/parse_number.h"
#include "base/text.h"
#include "pe-record/engines.h"
#include "recording/counters/attributes.h"
#include "recording/counters/event_name.h"
#include "recording/parts.h"
#include "recording/probes/list.h"
#include "recording/signal/layout.h"
#include "recording/target_options.h"

namespace pe::recorder {
namespace {

namespace po = boost::program_options;

po::typed_value<std::string>* text(const char* name) {
  return po::value<std::string>()->value_name(name);
}

using recording::CallGraph;

constexpr Choice<CallGraph> kCallGraphs[] = {
    {"auto", CallGraph::kAuto},
    {"dwarf", CallGraph::kDwarf},
    {"fp", CallGraph::kFramePointers},
    {"none", CallGraph::kNone},
};

constexpr Choice<recording::Clock> kClocks[] = {
    {"cpu", recording::Clock::kCpu},
    {"wall", recording::Clock::kWall},
};

/// Checks the size of a thread's ring for the engine signal.
void check_signal_ring(const recording::Request& request) {
  const auto page = static_cast<std::uint64_t>(::getpagesize());
  const std::uint64_t least = inprocess::kLeastRingBytes / page;
  const std::uint64_t most = inprocess::kMostRingBytes / page;
  if (request.ring_pages && (*request.ring_pages < least || *request.ring_pages > most))
    throw UsageError(fmt::format(
        "--mmap-pages: with --engine signal, a thread's ring has {} to {} pages", least, most));
}

std::vector<std::string> thread_choice(const std::string& list) {
  std::vector<std::string> threads = recording::split_list(list);
  for (const std::string& thread : threads)
    if (thread.empty())
      throw UsageError("--thread: not a name or number: ''");
  return threads;
}

/// What --event calls the time on CPUs, and off them.
constexpr std::string_view kCpu = "cpu", kWaits = "waits", kCpuClock = "cpu-clock";

/// Reads --event.  Checks the grammar only: an unknown event is refused when its counters are
/// opened.
void read_events(const std::string& list, Options& options) {
  for (const std::string& event : recording::split_events(list)) {
    options.with_waits = options.with_waits || event == kWaits;
    if (event == kCpu)
      options.request.events.emplace_back(kCpuClock);
    if (event == kCpu || event == kWaits)
      continue;
    if (add_ready_made(event, options.request, options.weights))
      continue;
    (void)recording::parse_event(event);
    options.request.events.push_back(event);
  }
}

/// Waits come with samples of CPU time or alone, and from the engines bpf and perf.
void check_waits(const CommandLine& line, const Options& options) {
  for (const std::string& event : options.request.events)
    if (event != kCpuClock)
      throw UsageError(fmt::format("--event waits: cannot be combined with {}, only with cpu",
                                   in_quotes(event)));
  if (options.request.events.empty())
    throw UsageError("--event waits: only with cpu, as --event cpu,waits; for waits alone: offcpu");
  using recording::Engine;
  const auto engine = options.request.engine;
  if (engine == Engine::kSignal || engine == Engine::kPtrace)
    throw UsageError("--event waits needs --engine bpf or perf");
  for (const char* option : {"wakers", "locks"})
    if (line.has(option) && engine == Engine::kPerf)
      throw UsageError(fmt::format("--{} needs --engine bpf", option));
  if (engine == Engine::kBpf || options.with_wakers || options.with_locks)
    recording::require(recording::Part::kBpf);
  if (line.has("stack-size") && engine != Engine::kPerf)
    throw UsageError("--event waits, --stack-size: only with --engine perf: bpf copies no stacks");
  for (const char* option :
       {"clock", "cpu", "call-graph", "keep-stacks", "kernel-only", "max-hits", "cgroup"})
    if (line.has(option))
      throw UsageError(fmt::format("--event waits, --{}: cannot be combined", option));
}

/// Reads --filter, --weight and --max-hits.
void read_hits(const CommandLine& line, Options& options) {
  recording::Request& request = options.request;
  if (const auto* filter = line.text("filter")) {
    const auto tracepoint =
        std::find_if(request.events.rbegin(), request.events.rend(), [](const std::string& event) {
          return recording::parse_event(event).kind == recording::EventName::Kind::kTracepoint;
        });
    if (tracepoint == request.events.rend())
      throw UsageError("--filter: there is no tracepoint in --event");
    request.filters[*tracepoint] = *filter;
  }
  if (line.has("weight") && !options.weights.empty())
    throw UsageError("--weight: cannot be combined with io, net and writes, which count bytes");
  if (const auto* field = line.text("weight"))
    options.weights[""] = {.field = *field, .unit = {}};
  if (line.has("weight") && request.events.empty())
    throw UsageError("--weight needs --event");
  if (const auto* value = line.text("max-hits"))
    request.max_hits = recording::read_positive("--max-hits", "not a number of hits", *value);
}

/// Returns the highest rate that the engine accepts.
std::uint64_t most_hz(recording::Engine engine) {
  using recording::Engine;
  if (engine == Engine::kSignal || engine == Engine::kPtrace)
    return recording::most_hz_of(engine);
  return recording::most_sample_hz().value_or(recording::kMostHz);
}

/// Reads the rate.  `--clock wall` samples every thread, whether it runs or not, so its default is
/// the lower one.
void read_rate(const CommandLine& line, bool is_command, recording::Request& request) {
  const bool is_wall = request.clock == recording::Clock::kWall;
  const std::uint64_t most = most_hz(request.engine);
  request.frequency_hz =
      std::min(most, is_command && !is_wall ? recording::kDefaultCommandHz : recording::kDefaultHz);
  if (const auto* value = line.text("freq")) {
    request.frequency_hz =
        *value == "max"
            ? most
            : recording::read_positive("--freq", "neither a frequency in Hz nor max", *value);
    request.frequency_was_given = true;
  }
  if (const auto* value = line.text("count")) {
    if (request.frequency_was_given)
      throw UsageError("--freq, --count: cannot be combined");
    request.period = recording::read_positive("--count", "not a period", *value);
  }
}

/// Reads --call-graph, in perf's form: "dwarf,16384" also sets the size of the copies.
void read_call_graph(const CommandLine& line, recording::Request& request) {
  const auto* value = line.text("call-graph");
  if (value == nullptr)
    return;
  const auto comma = value->find(',');
  const std::string how = value->substr(0, comma);
  if (how == "lbr")
    throw UsageError("--call-graph: lbr is not supported; use dwarf or fp");
  request.call_graph = find_choice("call-graph", kCallGraphs, how).value;
  if (comma == std::string::npos)
    return;
  if (request.call_graph != CallGraph::kDwarf)
    throw UsageError(fmt::format("--call-graph: only dwarf has a size: {}", in_quotes(*value)));
  if (line.has("stack-size"))
    throw UsageError("--call-graph dwarf,BYTES, --stack-size: cannot be combined");
  request.stack_bytes = recording::parse_stack_bytes("--call-graph", value->substr(comma + 1));
}

std::uint32_t read_budget(const std::string& text) {
  constexpr std::uint32_t kWhole = 100;
  const auto percent = parse_number<std::uint32_t>(text);
  if (!percent || *percent > kWhole)
    throw UsageError(
        fmt::format("--walk-budget: not a percentage from 0 to 100: {}", in_quotes(text)));
  return *percent;
}

void read_stacks(const CommandLine& line, recording::Request& request) {
  request.stack_bytes = recording::read_stack_bytes(line);
  read_call_graph(line, request);
  const bool has_copies =
      request.call_graph == CallGraph::kAuto || request.call_graph == CallGraph::kDwarf;
  if (const auto* value = line.text("walk-budget"))
    request.budget_percent = read_budget(*value);
  request.may_continue = !line.has("no-continue");
  request.keep_stacks = line.has("keep-stacks");
  if (!has_copies && (request.stack_bytes || request.keep_stacks))
    throw UsageError("--stack-size and --keep-stacks need --call-graph auto or dwarf");
}

/// Reads --keep and --keep-size.
void read_keep(const CommandLine& line, Options& options) {
  constexpr std::uint64_t kDefaultBytes = std::uint64_t{256} << 20;
  constexpr std::uint64_t kLeastBytes = std::uint64_t{1} << 20;
  const auto* time = line.text("keep");
  const auto* size = line.text("keep-size");
  if (size != nullptr && time == nullptr)
    throw UsageError("--keep-size needs --keep");
  if (time == nullptr)
    return;
  const auto ns = parse_duration_ns(*time);
  if (!ns || *ns < kNsPerSecond)
    throw UsageError(
        fmt::format("--keep: not a time of 1s or more, such as 10m: {}", in_quotes(*time)));
  const auto bytes = size == nullptr ? kDefaultBytes : parse_bytes(*size);
  if (!bytes || *bytes < kLeastBytes)
    throw UsageError(
        fmt::format("--keep-size: not a size of 1M or more, such as 256M: {}", in_quotes(*size)));
  if (!options.writes_file())
    throw UsageError("--keep needs a folder for its files: --output FOLDER");
  options.keep = recording::KeepLimits{.ns = *ns, .bytes = *bytes};
}

/// Reads --slow-calls and --report.
void read_slow_calls(const CommandLine& line, Options& options) {
  const auto* time = line.text("slow-calls");
  if ((time != nullptr) != line.has("report"))
    throw UsageError("--slow-calls, --report: each needs the other");
  if (time == nullptr)
    return;
  if (options.spans.empty())
    throw UsageError("--slow-calls needs the function: --span FUNC");
  const auto ns = parse_duration_ns(*time);
  if (!ns)
    throw UsageError(fmt::format("--slow-calls: not a time such as 200ms: {}", in_quotes(*time)));
  options.slow_calls = {.longer_ns = *ns, .fd = recording::read_writable_fd(line, "report")};
}

}  // namespace

void add_options(po::options_description& options) {
  recording::add_target_options(options);
  options.add_options()                                             //
      ("cpu,C", text("CPUS"), "record only on these CPUs (0-3,8)")  //
      ("freq,F", text("HZ"),
       "samples per second on each CPU, or max (default 997 for a command, else 99)")  //
      ("count,c", text("PERIOD"), "record one sample every PERIOD events instead")     //
      ("event,e", text("EVENT[,EVENT]"),
       "events to count, as in perf list (default cycles, else cpu-clock); "
       "probes: uprobe:PATH:FUNC, uretprobe:, usdt:, kprobe:, kretprobe:; "
       "ready-made: io, net, faults, writes")                                             //
      ("filter", text("EXPR"), "record a tracepoint only if EXPR holds: 'bytes > 4096'")  //
      ("weight", text("FIELD"),
       "weight samples by FIELD, arg0 to arg5, or retval")                              //
      ("wakers", "with --event cpu,waits, also record which thread ended each wait")    //
      ("locks", "with --event cpu,waits, also record the locks and who released them")  //
      ("max-hits", text("N"), "stop if there are more than N samples per second")       //
      ("list", text("PATTERN"), "list the events and probes that match, and exit")      //
      ("stacks,g", "record call stacks (the default)")                                  //
      ("call-graph", one_of("HOW", kCallGraphs),
       "how to find callers: auto (default), dwarf[,BYTES], fp, none")  //
      ("engine", one_of("NAME", kEngines),
       "how to sample: auto (default), best, perf, bpf, signal, ptrace")  //
      ("walk-budget", text("PERCENT"),
       "with engine bpf, walk stacks for this part of each CPU (default 5; 0: all)")  //
      ("clock", one_of("CLOCK", kClocks),
       "sample CPU time: cpu (default), or all time: wall (signal, ptrace)")                    //
      ("thread", text("NAME|TID"), "with --engine signal: record only these threads")           //
      ("stack-size", text("BYTES"), "bytes to copy of each stack (default 65528)")              //
      ("no-continue", "do not complete stacks deeper than their copy")                          //
      ("keep-stacks", "keep the copies of stacks in the stream")                                //
      ("kernel-only", "record only time in the kernel, and only its frames")                    //
      ("keep", text("TIME"), "with --output FOLDER, keep only the last TIME: 10m, 24h")         //
      ("keep-size", text("SIZE"), "with --keep, keep at most SIZE on the disk (default 256M)")  //
      ("slow-calls", text("TIME"), "with --span, report calls that take longer than TIME")      //
      ("report", text("FD"), "write a line of JSON to descriptor FD for each slow call")        //
      ("check", "report what can be recorded here, and exit");
  recording::add_stream_options(options);
}

Options read_options(const CommandLine& line) {
  Options options;
  options.target = recording::read_target(line, "--pid, --tid, --cpu, --all, --cgroup");
  options.command = line.command;
  recording::Request& request = options.request;
  request.engine = choose(line, "engine", kEngines, recording::Engine::kAuto);
  request.clock = choose(line, "clock", kClocks, request.clock);
  read_rate(line, options.target.is_command, request);
  if (const auto* list = line.text("event"))
    read_events(*list, options);
  options.spans = line.texts("span");
  read_hits(line, options);
  options.duration_ns = recording::read_duration(line);
  read_stacks(line, request);
  recording::read_recording(line, request);
  if (const auto* list = line.text("thread"))
    request.thread_choice = thread_choice(*list);
  for (const char* option : {"wakers", "locks"})
    if (line.has(option) && !options.with_waits)
      throw UsageError(fmt::format("--{} needs --event cpu,waits; for waits alone: offcpu --{}",
                                   option, option));
  options.with_wakers = line.has("wakers");
  options.with_locks = line.has("locks");
  if (options.with_waits)
    check_waits(line, options);
  else
    check_engine(line, options);
  using recording::Engine;
  if (line.has("walk-budget") &&
      (request.engine == Engine::kPerf || request.engine == Engine::kSignal ||
       request.engine == Engine::kPtrace))
    throw UsageError("--walk-budget needs --engine bpf");
  const bool is_signal = request.engine == Engine::kSignal;
  if (!request.thread_choice.empty() && !is_signal)
    throw UsageError("--thread needs --engine signal");
  if (is_signal)
    check_signal_ring(request);
  recording::read_output(line, options);
  read_keep(line, options);
  read_slow_calls(line, options);
  return options;
}

}  // namespace pe::recorder

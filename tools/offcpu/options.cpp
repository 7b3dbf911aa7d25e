// SPDX-License-Identifier: MIT
#include "offcpu/options.h"

#include <fmt/format.h>
#include <boost/program_options/options_description.hpp>
#include <boost/program_options/value_semantic.hpp>

#include <string_view>

#include "base/cli/command_line.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/parse_number.h"
#include "recording/parts.h"
#include "recording/target_options.h"

namespace pe::offcpu {
namespace {

namespace po = boost::program_options;
using waits::Blame;
using waits::EngineChoice;
using waits::WaitChoice;

po::typed_value<std::string>* text(const char* name) {
  return po::value<std::string>()->value_name(name);
}

std::optional<std::uint64_t> microseconds(const CommandLine& line, const char* option) {
  const auto* value = line.text(option);
  if (value == nullptr)
    return std::nullopt;
  const auto number = parse_number<std::uint64_t>(*value);
  if (!number || *number > std::numeric_limits<std::uint64_t>::max() / kNsPerUs)
    throw UsageError(fmt::format("--{}: not a number of microseconds: '{}'", option, *value));
  return *number * kNsPerUs;
}

/// "S,D" or "SD".
std::string states(const std::string& list) {
  constexpr std::string_view kKnown = "RSDTtIP";
  std::string letters;
  for (const char letter : list) {
    if (letter == ',')
      continue;
    if (kKnown.find(letter) == kKnown.npos)
      throw UsageError(fmt::format("--state: not one of R, S, D, T, t, I, P: '{}'",
                                   std::string_view(&letter, 1)));
    letters += letter;
  }
  if (letters.empty())
    throw UsageError(fmt::format("--state: no states: '{}'", list));
  return letters;
}

constexpr Choice<Blame> kBlames[] = {
    {"holder", Blame::kHolder},
    {"waiter", Blame::kWaiter},
};

void read_choice(const CommandLine& line, WaitChoice& choice) {
  choice.min_ns = microseconds(line, "min-us").value_or(choice.min_ns);
  choice.max_ns = microseconds(line, "max-us").value_or(choice.max_ns);
  if (choice.min_ns > choice.max_ns)
    throw UsageError("--min-us is larger than --max-us");
  if (const auto* list = line.text("state"))
    choice.states = states(*list);
  choice.with_wakers = line.has("wakers");
  choice.with_locks = line.has("locks");
  choice.blame = choose(line, "blame", kBlames, Blame::kHolder);
  choice.with_preempted = line.has("preempted") || choice.states.find('R') != std::string::npos;
  choice.with_held = line.has("held");
  for (const char* option : {"blame", "held"})
    if (line.has(option) && !choice.with_locks)
      throw UsageError(fmt::format("--{} needs --locks", option));
  for (const char* option : {"blame", "wakers", "span"})
    if (choice.with_held && line.has(option))
      throw UsageError(fmt::format("--held, --{}: cannot be combined", option));
  for (const char* option : {"state", "preempted", "kernel-only"})
    if (choice.with_locks && line.has(option))
      throw UsageError(fmt::format("--locks, --{}: cannot be combined", option));
}

constexpr Choice<EngineChoice> kEngines[] = {
    {"auto", EngineChoice::kAuto},
    {"perf", EngineChoice::kPerf},
    {"bpf", EngineChoice::kBpf},
};

EngineChoice read_engine(const CommandLine& line) {
  const EngineChoice engine = choose(line, "engine", kEngines, EngineChoice::kAuto);
  for (const char* option : {"wakers", "locks"}) {
    if (!line.has(option))
      continue;
    if (engine == EngineChoice::kPerf)
      throw UsageError(fmt::format("--{} needs --engine bpf", option));
    recording::require(recording::Part::kBpf);
    return EngineChoice::kBpf;
  }
  if (engine == EngineChoice::kBpf)
    recording::require(recording::Part::kBpf);
  return engine;
}

recording::Request read_request(const CommandLine& line, const WaitChoice& choice) {
  recording::Request request;
  // A copy costs the switching thread time, and room in the ring.  The rest of a deeper stack is
  // read from its process, where it is unchanged as long as the thread waits.
  constexpr std::uint32_t kStackBytes = 8 * 1024;
  request.events = {choice.states.empty() ? "context-switches" : "sched:sched_switch"};
  request.period = 1;
  request.with_switches = true;
  request.with_raw_data = !choice.states.empty();
  request.stack_bytes = recording::read_stack_bytes(line).value_or(kStackBytes);
  recording::read_recording(line, request);
  return request;
}

}  // namespace

void add_options(po::options_description& options) {
  recording::add_target_options(options);
  options.add_options()                                                       //
      ("min-us", text("US"), "leave out waits shorter than US microseconds")  //
      ("max-us", text("US"), "leave out waits longer than US microseconds")   //
      ("state", text("STATE[,STATE]"),
       "record only waits in these states, letters as in ps: S, D")                //
      ("preempted", "also record waits of preempted threads")                      //
      ("wakers", "also record which thread ended each wait, after the frame --")   //
      ("locks", "record only waits for locks, with the lock and who released it")  //
      ("blame", one_of("STACK", kBlames),
       "with --locks, the stack that comes first: holder (default), waiter")                   //
      ("held", "with --locks, record how long threads held mutexes that they had waited for")  //
      ("kernel-only", "record only kernel frames")                                             //
      ("stack-size", text("BYTES"), "bytes to copy of each stack (default 8192)")              //
      ("engine", one_of("ENGINE", kEngines), "how to record: auto (default), perf, bpf");
  recording::add_stream_options(options);
}

Options read_options(const CommandLine& line) {
  Options options;
  options.target = recording::read_target(line, "--pid, --tid, --all, --cgroup");
  options.command = line.command;
  options.duration_ns = recording::read_duration(line);
  read_choice(line, options.waits.choice);
  options.spans = line.texts("span");
  options.waits.engine = read_engine(line);
  options.waits.request = read_request(line, options.waits.choice);
  recording::read_output(line, options);
  return options;
}

}  // namespace pe::offcpu

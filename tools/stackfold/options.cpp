// SPDX-License-Identifier: MIT
#include "stackfold/options.h"

#include <fmt/format.h>

#include <boost/program_options/options_description.hpp>
#include <boost/program_options/value_semantic.hpp>

#include "base/cli/choice.h"
#include "base/error.h"
#include "stackfold/exports/form.h"
#include "stackfold/formats/format.h"

namespace pe::fold {

namespace po = boost::program_options;

namespace {

constexpr Choice<UnnamedText> kUnnamedTexts[] = {
    {"place", UnnamedText::kPlace},
    {"module", UnnamedText::kModule},
    {"unknown", UnnamedText::kUnknown},
};

constexpr Choice<Weight> kWeights[] = {
    {"samples", Weight::kSamples},
    {"period", Weight::kPeriod},
};

/// Refuses options that shape folded text: profiles have fields for the same data.
void refuse_with_to(const CommandLine& line) {
  for (const char* option : {"compat", "all-events", "pid", "tid", "weight", "unnamed"})
    if (line.has(option))
      throw UsageError(fmt::format("--{}: not with --to", option));
}

std::optional<std::string> read_event(const CommandLine& line) {
  const std::string* event = line.text("event");
  const std::string* filter = line.text("event-filter");
  if (event != nullptr && filter != nullptr)
    throw UsageError("--event, --event-filter: these are the same");
  const std::string* given = event != nullptr ? event : filter;
  return given != nullptr ? std::optional(*given) : std::nullopt;
}

}  // namespace

void add_options(po::options_description& options) {
  const auto text = [](const char* name) { return po::value<std::string>()->value_name(name); };
  const auto texts = [](const char* name) {
    return po::value<std::vector<std::string>>()->value_name(name);
  };
  options.add_options()("from", one_of("FORMAT", names_of(formats())),
                        ("what the input is: " + names_of(formats())).c_str())(
      "merge-sorted", "add up folded text that is sorted, in constant memory")(
      "stats", "with --merge-sorted: tell how much was read and written")(
      "to", one_of("FORM", names_of(exports::forms())),
      ("write a profile for viewers: " + names_of(exports::forms())).c_str())(
      "compat", "fold perf-script exactly as stackcollapse-perf.pl")(
      "addrs", "show the addresses of frames without a name")("all", "mark kernel and JIT frames")(
      "all-events", "fold every event, its name as root frame")(
      "annotate", "mark frames by kind: _[k] _[j] _[i] _[l]")(
      "kernel", "mark kernel frames with _[k]")("jit", "mark JIT-compiled frames with _[j]")(
      "pid", "add the process number to the root frame")(
      "tid", "add process and thread numbers to it")("event", text("EVENT"),
                                                     "fold the samples of this event only")(
      "event-filter", text("EVENT"), "the same, as stackcollapse-perf.pl spells it")(
      "time", text("FROM,TO"), "fold samples of this time only, in seconds")(
      "include", texts("REGEX"), "fold only stacks with a frame like this")(
      "exclude", texts("REGEX"), "leave out stacks with a frame like this")(
      "recursive", "show a function that calls itself once")(
      "running", "leave out stacks of macos-sample that wait")(
      "inline", "show functions inlined into perf script's frames")(
      "context", "with --inline: add file and line to names")(
      "srcline", "add source lines to names, where the input has them")(
      "modules", "put the module before each name: libc.so.6`read")(
      "unnamed", one_of("HOW", kUnnamedTexts), "call frames of a stream: place, module, unknown")(
      "weight", one_of("HOW", kWeights), "weigh by samples or by period");
}

namespace {

/// Returns true for --merge-sorted, which only copies and adds up lines.  Throws UsageError if
/// another option comes with it.
bool read_merge_options(const CommandLine& line, Options& options) {
  options.merges_sorted = line.has("merge-sorted");
  options.with_stats = line.has("stats");
  if (!options.merges_sorted) {
    if (options.with_stats)
      throw UsageError("--stats: only with --merge-sorted");
    return false;
  }
  po::options_description all;
  add_options(all);
  for (const auto& option : all.options()) {
    const std::string& name = option->long_name();
    if (name != "merge-sorted" && name != "stats" && line.has(name))
      throw UsageError(fmt::format("--{}: not with --merge-sorted", name));
  }
  return true;
}

}  // namespace

Options read_options(const CommandLine& line) {
  Options options;
  if (read_merge_options(line, options))
    return options;
  const bool all = line.has("annotate");
  options.marks = {.kernel = all || line.has("kernel"),
                   .jit = all || line.has("jit"),
                   .inlined = all,
                   .library = all};
  if (line.has("all"))
    options.marks.kernel = options.marks.jit = true;
  options.is_perl = line.has("compat");
  options.with_addresses = line.has("addrs");
  options.with_inlined = line.has("inline");
  options.with_context = line.has("context");
  options.with_source = line.has("srcline");
  options.with_modules = line.has("modules");
  if (options.with_modules && options.is_perl)
    throw UsageError("--modules: not with --compat");
  if (options.with_context && !options.with_inlined && !options.is_perl)
    throw UsageError("--context: only with --inline");
  options.all_events = line.has("all-events");
  if (options.all_events && (line.has("event") || line.has("event-filter")))
    throw UsageError("--all-events: not with --event");
  if (const auto* name = line.text("from"))
    options.from = &find_choice("from", formats(), *name);
  if (const auto* name = line.text("to")) {
    options.to = &find_choice("to", exports::forms(), *name);
    refuse_with_to(line);
  }
  if (line.has("pid"))
    options.root = RootName::kCommPid;
  if (line.has("tid"))
    options.root = RootName::kCommPidTid;
  options.event = read_event(line);
  if (options.is_perl && options.event == "")
    options.event.reset();  // as in stackcollapse-perf.pl
  if (const auto* range = line.text("time"))
    options.time = parse_time_range(*range);
  options.only_running = line.has("running");
  options.is_recursive = line.has("recursive");
  options.include = line.texts("include");
  options.exclude = line.texts("exclude");
  options.unnamed = choose(line, "unnamed", kUnnamedTexts, options.unnamed);
  options.weight = choose(line, "weight", kWeights, options.weight);
  return options;
}

}  // namespace pe::fold

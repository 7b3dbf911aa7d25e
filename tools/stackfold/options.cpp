// SPDX-License-Identifier: MIT
#include "stackfold/options.h"

#include <fmt/format.h>
#include <boost/program_options/options_description.hpp>
#include <boost/program_options/value_semantic.hpp>

#include <algorithm>

#include "base/cli/command_line.h"
#include "base/clock.h"
#include "base/error.h"
#include "folded/count.h"
#include "stackfold/exports/choice.h"
#include "stackfold/formats/format.h"
#include "stackfold/timeline.h"

namespace pe::fold {

namespace po = boost::program_options;

namespace {

constexpr Choice<UnnamedText> kUnnamedTexts[] = {
    {"place", UnnamedText::kPlace},
    {"module", UnnamedText::kModule},
    {"unknown", UnnamedText::kUnknown},
};

constexpr Choice<Roots> kRoots[] = {
    {"process", Roots::kProcess},
    {"thread", Roots::kThread},
    {"command", Roots::kCommand},
    {"tree", Roots::kTree},
};

constexpr Choice<Weight> kWeights[] = {
    {"samples", Weight::kSamples},
    {"period", Weight::kPeriod},
    {"elapsed", Weight::kElapsed},
};

/// Refuses options that shape folded text: profiles have fields for the same data.
void refuse_with_to(const CommandLine& line) {
  for (const char* option : {"compat", "all-events", "every", "pid", "tid", "weight", "unnamed",
                             "span", "longer", "strip-names", "root", "mark-waits"})
    if (line.has(option))
      throw UsageError(fmt::format("--{}: cannot be combined with --to", option));
}

void set_weight(Options& options, const CommandLine& line) {
  const auto* text = line.text("weight");
  const bool is_word =
      text == nullptr ||
      std::ranges::find(kWeights, *text, &Choice<Weight>::name) != std::end(kWeights);
  if (!is_word) {
    options.weight_field = *text;
    return;
  }
  options.weight = choose(line, "weight", kWeights, options.weight);
  if (options.weight != Weight::kElapsed)
    return;
  for (const char* option : {"event", "all-events", "span", "longer", "compat"})
    if (line.has(option))
      throw UsageError(fmt::format("--weight elapsed, --{}: cannot be combined", option));
}

std::uint64_t parse_every(const std::string& text) {
  const auto ns = parse_duration_ns(text);
  if (!ns || *ns == 0)
    throw UsageError(fmt::format("--every: not a time such as 100ms, 1s or 5m: '{}'", text));
  if (*ns > folded::Timeline::kMostStepNs)
    throw UsageError(fmt::format("--every: at most 60m: '{}'", text));
  return *ns;
}

}  // namespace

void add_options(po::options_description& options) {
  const auto text = [](const char* name) { return po::value<std::string>()->value_name(name); };
  const auto texts = [](const char* name) {
    return po::value<std::vector<std::string>>()->value_name(name);
  };
  options.add_options()  //
      ("from", one_of("FORMAT", names_of(formats())),
       ("format of the input: " + names_of(formats()) + " (default: detected)").c_str())  //
      ("to", one_of("FORM", names_of(exports::forms())),
       ("write a profile for viewers: " + names_of(exports::forms())).c_str())        //
      ("merge-sorted", "add up sorted folded text, in constant memory")               //
      ("stats", "with --merge-sorted: report the lines read and the stacks written")  //
      ("strip-names",
       "cut parts of names that differ between builds and runs, such as the numbers of lambdas")  //
      ("event,event-filter", text("EVENT"),
       "fold the samples of this event (default: the first)")         //
      ("all-events", "fold all events; the root frame is the event")  //
      ("time", text("FROM,TO"),
       "fold the samples between two times: 14:05, +15s, -30s, seconds")                //
      ("every", text("TIME"), "divide counts by time: the root frame is the time")      //
      ("span", text("FUNC"), "fold only what happens inside calls to FUNC")             //
      ("longer", text("TIME"), "fold only what happens inside calls longer than TIME")  //
      ("include", texts("REGEX"), "fold only stacks with a frame that matches")         //
      ("exclude", texts("REGEX"), "leave out stacks with a frame that matches")         //
      ("running", "leave out waiting stacks, in the text of macOS sample")              //
      ("recursive", "show a function that calls itself as one frame")                   //
      ("annotate",
       "mark frames: _[k] kernel, _[j] JIT code, _[i] inlined, _[l] shared library, _[s] "
       "script, _[t] returned by a tail call; write facts about the recording")  //
      ("lines,srcline", "add source lines to names, if the input has them")      //
      ("modules", "put the module before each name: libc.so.6`read")             //
      ("inline", "show inlined functions, in the text of perf script")           //
      ("context", "with --inline: add file and line to names")                   //
      ("root", one_of("HOW", kRoots),
       "root frames: process, thread (below its process), command (line of the process), tree (of "
       "command lines)")                                //
      ("mark-waits", "mark the frames of waits: _[o]")  //
      ("unnamed", one_of("HOW", kUnnamedTexts),
       "text of frames without a name: place, such as libc.so.6+0x1f (default), module, "
       "unknown")  //
      ("weight", one_of("HOW", kWeights),
       "count each sample as 1 (samples), as its period, or as the value of a tracepoint's field");
}

void add_compatible_options(po::options_description& options) {
  options.add_options()                                                      //
      ("compat", "fold the text of perf script exactly as the script does")  //
      ("kernel", "mark kernel frames with _[k]")                             //
      ("jit", "mark JIT-compiled frames with _[j]")                          //
      ("all", "mark both kernel and JIT-compiled frames")                    //
      ("addrs", "show the addresses of frames without a name")               //
      ("pid", "add the process id to the root frame: comm-PID")              //
      ("tid", "add process and thread ids to the root frame: comm-PID/TID");
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
  add_compatible_options(all);
  for (const auto& option : all.options()) {
    const std::string& name = option->long_name();
    if (name != "merge-sorted" && name != "stats" && name != "strip-names" && line.has(name))
      throw UsageError(fmt::format("--{}: cannot be combined with --merge-sorted", name));
  }
  return true;
}

/// Reads --span and --longer.
void read_calls(const CommandLine& line, Options& options) {
  options.chooses_calls = line.has("span") || line.has("longer");
  if (options.chooses_calls && options.is_perl)
    throw UsageError("--span, --longer: cannot be combined with --compat");
  if (const auto* function = line.text("span"))
    options.span = *function;
  if (const auto* text = line.text("longer")) {
    const auto ns = parse_duration_ns(*text);
    if (!ns)
      throw UsageError(fmt::format("--longer: not a time such as 500us, 50ms or 1s: '{}'", *text));
    options.longer_ns = *ns;
  }
}

/// Reads the time range, the steps of time, and what the root frame is; after --compat.
void read_times(const CommandLine& line, Options& options) {
  if (const auto* range = line.text("time"))
    options.time = stream::parse_time_range(*range);
  if (const auto* step = line.text("every")) {
    options.every_ns = parse_every(*step);
    if (options.is_perl)
      throw UsageError("--every: cannot be combined with --compat");
  }
  if (line.has("pid"))
    options.root = RootName::kCommPid;
  if (line.has("tid"))
    options.root = RootName::kCommPidTid;
  options.roots = choose(line, "root", kRoots, options.roots);
  options.marks_waits = line.has("mark-waits");
  if (options.is_perl && (options.roots != Roots::kNone || options.marks_waits))
    throw UsageError("--root, --mark-waits: cannot be combined with --compat");
  if (line.has("tid") && options.roots != Roots::kNone && options.roots != Roots::kThread)
    throw UsageError("--tid: with --root, only for --root thread");
}

}  // namespace

Options read_options(const CommandLine& line) {
  Options options;
  options.strips_names = line.has("strip-names");
  if (read_merge_options(line, options))
    return options;
  const bool all = line.has("annotate");
  options.marks = {.kernel = all || line.has("kernel"),
                   .jit = all || line.has("jit"),
                   .inlined = all,
                   .library = all,
                   .script = all,
                   .tail_call = all,
                   .wait = all};
  options.with_facts = all && !line.has("compat") && !line.has("to");
  if (line.has("all"))
    options.marks.kernel = options.marks.jit = true;
  options.is_perl = line.has("compat");
  if (options.strips_names && options.is_perl)
    throw UsageError("--strip-names: cannot be combined with --compat");
  options.with_addresses = line.has("addrs");
  options.with_inlined = line.has("inline");
  options.with_context = line.has("context");
  options.with_lines = line.has("lines");
  options.with_modules = line.has("modules");
  if (options.with_modules && options.is_perl)
    throw UsageError("--modules: cannot be combined with --compat");
  read_times(line, options);
  read_calls(line, options);
  if (options.with_context && !options.with_inlined && !options.is_perl)
    throw UsageError("--context: only with --inline");
  options.all_events = line.has("all-events");
  if (options.all_events && line.has("event"))
    throw UsageError("--all-events: cannot be combined with --event");
  if (const auto* name = line.text("from"))
    options.from = &find_choice("from", formats(), *name);
  if (const auto* name = line.text("to")) {
    options.to = &find_choice("to", exports::forms(), *name);
    refuse_with_to(line);
  }
  if (const auto* event = line.text("event"))
    options.event = *event;
  if (options.is_perl && options.event == "")
    options.event.reset();  // as in stackcollapse-perf.pl
  options.only_running = line.has("running");
  options.is_recursive = line.has("recursive");
  options.include = line.texts("include");
  options.exclude = line.texts("exclude");
  options.unnamed = choose(line, "unnamed", kUnnamedTexts, options.unnamed);
  set_weight(options, line);
  return options;
}

}  // namespace pe::fold

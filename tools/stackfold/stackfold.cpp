// SPDX-License-Identifier: MIT
#include "stackfold/stackfold.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <initializer_list>
#include <span>
#include <string_view>
#include <utility>

#include "base/clock.h"
#include "base/error.h"
#include "base/text.h"
#include "folded/facts.h"
#include "folded/folded_reader.h"
#include "painting/numbers.h"
#include "stackfold/exports/choice.h"
#include "stackfold/exports/stream_profile.h"
#include "stackfold/formats/format.h"
#include "stackfold/options.h"
#include "stackfold/perl.h"
#include "stackfold/refine.h"
#include "stackfold/stream_collapser.h"
#include "stackfold/strip_names.h"

namespace pe::fold {
namespace {

// `perf script --header` prints its comments first: about 10 KiB on a large machine.
constexpr std::size_t kLookBytes = 64UL * 1024;

}  // namespace

const Format& detect(Input& input) {
  // The first bytes identify a stream: its reader must not wait for the rest of the head.
  const Bytes start = input.peek(sizeof(std::uint64_t));
  const auto text = [](Bytes bytes) {
    return std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  };
  if (stream_format().looks_like(text(start)))
    return stream_format();
  if (const auto unreadable = folded::describe_unreadable(text(start)); !unreadable.empty())
    throw Error(fmt::format("{}: {}", input.name(), unreadable));
  std::string_view head = text(input.peek(kLookBytes));
  if (const auto end = head.rfind('\n'); head.size() == kLookBytes && end != head.npos)
    head = head.substr(0, end + 1);  // the last line is incomplete
  const auto format = std::find_if(formats().begin(), formats().end(),
                                   [head](const Format& known) { return known.looks_like(head); });
  if (format != formats().end())
    return *format;
  if (head.size() == kLookBytes && head.find('\n') == head.npos)
    return folded_format();  // a stack may be this long; its reader reports malformed lines
  head.remove_prefix(std::min(head.find_first_not_of(" \t\r\n"), head.size()));
  throw Error(
      fmt::format("{}: unknown format; first line: {} (stackfold --help lists the formats: choose "
                  "one by --from)",
                  input.name(), in_quotes(head.substr(0, head.find_first_of("\r\n")))));
}

}  // namespace pe::fold

namespace pe {
namespace {

std::string other_events(std::uint64_t samples, const std::string& folded_event) {
  return fmt::format("{} of other events left out (folded: {}; others: stackfold --event NAME)",
                     plural(samples, "sample"), folded_event.empty() ? "none" : folded_event);
}

void add_to(std::string& list, const std::string& more) {
  list += (list.empty() ? "" : ", ") + more;
}

/// Describes the samples that are left out.  The user knows about other events if they chose one.
template <typename Report>
void add_left_out(std::string& text, const Report& report, const fold::Options& options) {
  if (report.other_events > 0 && !options.event)
    add_to(text, other_events(report.other_events, report.folded_event));
  if (report.outside_time > 0)
    add_to(text, plural(report.outside_time, "sample") + " outside --time left out");
  if (report.without_time > 0)
    add_to(text, plural(report.without_time, "sample") + " without a time left out");
}

/// Reports skipped input.  It is only a note if the rest of the input `is_right`.
void explain(const std::string& message, bool is_right, const Io& io) {
  if (is_right)
    io.note(message);
  else
    io.report(message);
}

/// Reports that no sample to fold has the time that --every needs; false if that is not so.
template <typename Report>
bool report_timeless(const Report& report, std::uint64_t folded, const Input& input,
                     const fold::Options& options, const Io& io) {
  if (!options.every_ns || folded > 0 || report.without_time == 0)
    return false;
  io.report(input.name() + ": --every: no sample has a time");
  return true;
}

/// Describes in one line what the output lacks; empty if it lacks nothing.
std::string losses(const fold::StreamReport& report, const fold::Options& options) {
  std::string text = stream::describe_losses(report.counts);
  if (report.undefined_symbols > 0)
    add_to(text, plural(report.undefined_symbols, "malformed name"));
  if (report.unholdable > 0)
    add_to(text, plural(report.unholdable, "sample") +
                     " left out that are not of mutexes: when others are released is not known");
  if (report.child_wait_ns > 0)
    add_to(text, fmt::format("{:.3f} s of waits for children left out, because the children are "
                             "drawn (keep them: stackfold --root command)",
                             static_cast<double>(report.child_wait_ns) /
                                 static_cast<double>(kNsPerSecond)));
  add_left_out(text, report, options);
  return text;
}

/// Reports the result.  False if the input was damaged, or lacks the requested event.
bool report_stream(const fold::StreamReport& report, const Input& input,
                   const fold::Options& options, const Io& io) {
  if (options.event && std::find(report.events.begin(), report.events.end(), *options.event) ==
                           report.events.end()) {
    io.report(fmt::format("{}: no event '{}' (it has {})", input.name(), *options.event,
                          fmt::join(report.events, ", ")));
    return false;
  }
  if (report_timeless(report, report.folded_samples, input, options, io))
    return false;
  if (const std::string missing = losses(report, options); !missing.empty())
    io.note(fmt::format("{}: {} read; {}", input.name(), plural(report.counts.samples, "sample"),
                        missing));
  else if (report.counts.samples == 0)
    io.note(input.name() + ": 0 samples in it");
  if (report.calls && !report.calls->function.empty())
    io.note(fmt::format("{}: {}", input.name(), fold::describe(*report.calls, options.longer_ns)));
  if (report.is_nameless)
    io.note(input.name() + ": no frame has a name (run pe-symbolize before stackfold)");
  if (options.with_lines && report.is_lineless)
    io.note(input.name() + ": no frame has a source line (run pe-symbolize --lines)");
  if (!report.damage.empty())
    io.report(input.name() + ": " + report.damage);
  return report.damage.empty();
}

/// The stacks read so far: folded counts, and for exported streams a more detailed profile.
struct Taken {
  folded::FoldedCounts& counts;
  fold::exports::Profile& profile;
  std::string first_event = {};  ///< of the first stream: viewers show it first
  std::string unit = {};         ///< of the counts of the first stream
  std::string facts = {};        ///< lines of folded text, of the last input that has any
};

/// Reads a stream into `taken`.  False if the input was damaged; `taken` has the readable part.
bool take_stream(Input& input, const fold::Options& options, Taken& taken, Io& io) {
  const fold::StreamReport report =
      options.to == nullptr
          ? fold::StreamCollapser(input, options, taken.counts).fold()
          : fold::exports::add_stream(input, options, options.to->has_times, taken.profile);
  if (taken.first_event.empty())
    taken.first_event = report.folded_event;
  taken.facts = report.facts;
  if (taken.unit.empty())
    taken.unit = report.unit;
  else if (!report.unit.empty() && report.unit != taken.unit &&
           options.weight == fold::Weight::kByUnit)
    io.note(
        fmt::format("{} counts {}, an earlier input {}: their sum is meaningless (choose one with "
                    "--event, or use --weight period)",
                    input.name(), report.unit, taken.unit));
  return report_stream(report, input, options, io);
}

/// Returns the sum of the counts so far.
folded::Count sum_of(const folded::FoldedCounts& counts) {
  folded::Count sum;
  for (const folded::Count& count : counts.counts())
    static_cast<void>(sum.add(count));
  return sum;
}

/// Reports the unit of the counts of a text, and keeps it as a fact.  `counted`: the name of the
/// text, and the sum of its counts.
void take_unit(const fold::TextReport& report, const std::string& counted,
               const fold::Options& options, Taken& taken, const Io& io) {
  if (report.unit.empty() || options.is_perl)
    return;
  folded::append_fact(taken.facts, "unit", report.unit);
  if (!options.with_facts)
    io.note(fmt::format(
        "{} {} of {} in {} (count samples: stackfold --weight samples; name the "
        "unit: flamesvg --countname {})",
        counted, report.unit, report.folded_event, plural(report.samples, "sample"), report.unit));
}

/// Folds text.  False if it was damaged, or has no stack in the format or of the requested event.
/// Several inputs are one text; messages have the name of the first.
bool fold_text(std::span<Input> inputs, const fold::Options& options, const fold::Format& format,
               Taken& taken, const Io& io) {
  Input& input = inputs.front();
  const bool is_empty = input.peek(1).empty();
  const folded::Count before = sum_of(taken.counts);
  const fold::TextReport report = inputs.size() > 1
                                      ? format.fold_as_perl(inputs, options, taken.counts)
                                      : format.fold(input, options, taken.counts);
  taken.facts = report.facts;
  const folded::Count sum{.whole = sum_of(taken.counts).whole - before.whole};
  take_unit(report, fmt::format("{}: {}", input.name(), painting::grouped_count(sum, 1)), options,
            taken, io);
  if (report_timeless(report, report.samples, input, options, io))
    return false;
  std::string left_out;
  add_left_out(left_out, report, options);
  if (!left_out.empty())
    io.note(
        fmt::format("{}: {} read; {}", input.name(), plural(report.samples, "sample"), left_out));
  if (report.modules_without_debug > 0)
    io.note(fmt::format("{}: --inline: no debug information in {}; first: {}", input.name(),
                        plural(report.modules_without_debug, "module"),
                        in_quotes(report.first_without_debug)));
  const bool is_flat = report.without_stack == report.samples && report.ignored_lines == 0;
  if (report.samples > 0 && is_flat && !options.is_perl)
    io.note(input.name() + ": no sample has a stack (record stacks: perf record -g)");
  // stackcollapse-perf.pl accepts any text, even without a sample.
  const bool is_right =
      is_empty || options.is_perl || report.is_empty_profile ||
      report.samples + report.other_events + report.outside_time + report.without_time > 0;
  if (report.ignored_lines > 0)
    explain(fmt::format("ignored {}; first: {}", plural(report.ignored_lines, "unknown line"),
                        report.first_ignored),
            is_right, io);
  if (!report.left_out.empty())
    explain(fmt::format("{}: {}", input.name(), report.left_out), is_right, io);
  if (!report.damage.empty())
    io.report(fmt::format("{}: {}", input.name(), report.damage));
  if (options.event && !options.is_perl && report.samples == 0 && report.other_events > 0) {
    io.report(fmt::format("{}: no sample of event '{}'", input.name(), *options.event));
    return false;
  }
  if (report.is_empty_profile)
    io.note(input.name() + ": 0 samples in it");
  if (!is_right && report.ignored_lines == 0 && report.left_out.empty() && report.damage.empty())
    io.report(
        fmt::format("{}: no stack in the format {} (specify another: stackfold --from FORMAT)",
                    input.name(), format.name));
  return report.damage.empty() && is_right;
}

/// Reads folded text.  False if all lines are malformed.
bool fold_folded(Input input, Taken& taken, const Io& io) {
  folded::FoldedReader reader(std::move(input));
  bool is_any = false;
  while (const auto line = reader.next()) {
    taken.counts.add(line->stack, line->count);
    is_any = true;
  }
  for (const folded::Fact& fact : reader.facts())
    folded::append_fact(taken.facts, fact.key, fact.value);
  if (reader.malformed().count == 0)
    return true;
  explain(reader.malformed().describe(), is_any, io);
  return is_any;
}

/// Returns the first of these options that was given; empty if none was.
std::string_view first_given(
    std::initializer_list<std::pair<bool, std::string_view>> options) noexcept {
  for (const auto& [is_given, name] : options)
    if (is_given)
      return name;
  return {};
}

/// Throws Error if an option needs data that a sample stream does not have.
void refuse_stream_options(const fold::Options& options, const std::string& input) {
  if (options.with_inlined)
    throw Error(input +
                ": --inline: not for a sample stream (pe-symbolize adds inlined functions)");
  const std::string_view option = first_given({{options.with_modules, "modules"},
                                               {options.with_lines, "lines"},
                                               {options.is_recursive, "recursive"}});
  if (options.to != nullptr && !option.empty())
    throw Error(fmt::format("{}: --{}: cannot be combined with --to, which keeps modules and lines",
                            input, option));
}

/// Throws Error if an option needs data that the format does not have.
void refuse_options(const fold::Options& options, const fold::Format& format,
                    const std::string& input) {
  const std::string_view timed =
      first_given({{options.time.has_value(), "time"}, {options.every_ns.has_value(), "every"}});
  if (!format.has.times && !timed.empty())
    throw Error(fmt::format("{}: --{}: {} text has no times", input, timed, format.name));
  if (options.chooses_calls && &format != &fold::stream_format())
    throw Error(fmt::format("{}: --{}: {} text has no calls (record them: pe-record --span FUNC)",
                            input, options.span ? "span" : "longer", format.name));
  if (!options.weight_field.empty() && &format != &fold::stream_format())
    throw Error(fmt::format("{}: --weight {}: {} text has no fields: choose samples or period",
                            input, in_quotes(options.weight_field), format.name));
  if (options.event && !format.has.events)
    throw Error(fmt::format("{}: --event: {} text has no events", input, format.name));
  if (options.only_running && !format.has.waits)
    throw Error(input + ": --running: only for the text of macOS sample");
  if (&format == &fold::stream_format())
    return refuse_stream_options(options, input);  // it has the lines of pe-symbolize --lines
  const std::string_view of_stream = first_given(
      {{options.roots != fold::Roots::kNone, "root"}, {options.marks_waits, "mark-waits"}});
  if (!of_stream.empty())
    throw Error(fmt::format("{}: --{}: only for a sample stream", input, of_stream));
  const std::string_view option =
      first_given({{options.with_inlined, "inline"}, {options.with_lines, "lines"}});
  if (!format.has.frame_lines && !option.empty())
    throw Error(fmt::format("{}: --{}: only for the text of perf script", input, option));
  if (!format.has.modules && options.with_modules)
    throw Error(fmt::format("{}: --modules: {} text has no modules", input, format.name));
}

const fold::Format& format_of(Input& input, const fold::Options& options) {
  input.skip_byte_order_mark();
  return options.from != nullptr ? *options.from : fold::detect(input);
}

/// Returns the number of inputs to read as one text.
std::size_t read_at_once(std::span<Input> inputs, const fold::Options& options) {
  const bool are_one_text =
      options.is_perl && format_of(inputs.front(), options).fold_as_perl != nullptr;
  return are_one_text ? inputs.size() : 1;
}

/// Returns the time of an input's last sample in microseconds.
std::uint64_t end_of(Input input, const fold::Options& options) {
  fold::Options all;
  all.from = options.from;
  all.all_events = true;
  all.time.emplace();  // without limits: times are read only if they are needed
  folded::FrameTable frames;
  folded::FoldedCounts counts(frames);
  const fold::Format& format = format_of(input, all);
  if (format.fold != nullptr)
    return format.fold(input, all, counts).times.last_us;
  return fold::StreamCollapser(input, all, counts).fold().times.last_us;
}

/// Reads inputs, which all have the same format.  False if they are damaged or have no valid data.
bool take_inputs(std::span<Input> inputs, const fold::Options& options, Taken& taken, Io& io) {
  Input& input = inputs.front();
  const fold::Format& format = format_of(input, options);
  refuse_options(options, format, input.name());
  if (format.fold != nullptr)
    return fold_text(inputs, options, format, taken, io);
  if (&format == &fold::stream_format())
    return take_stream(input, options, taken, io);
  return fold_folded(std::move(input), taken, io);
}

/// Adds to `refined` the stacks of `counts` that --include and --exclude keep, and reports the
/// others.
void refine(folded::FoldedCounts& counts, fold::Refiner& refiner, folded::FoldedCounts& refined,
            const Io& io) {
  const fold::LeftOut left_out = refiner.apply(counts, refined);
  if (left_out.stacks == 0)
    return;
  io.note(fmt::format("--include, --exclude: {} of {} left out: a count of {} of {}",
                      left_out.stacks, plural(counts.size(), "different stack"),
                      folded::to_text(left_out.count), folded::to_text(left_out.of)));
}

void write_folded(folded::FoldedCounts& counts, Io& io) {
  counts.write(io.out);
  if (counts.saturated())
    io.report("some counts exceed 2^64 and were capped");
}

void write_export(const folded::FoldedCounts& counts, Taken& taken, const fold::Options& options,
                  Io& io) {
  fold::exports::Profile& profile = taken.profile;
  const std::size_t all = profile.sums().size();
  if (const std::size_t left_out = fold::exports::choose(options, profile); left_out > 0)
    io.note(fmt::format("--include, --exclude: {} of {} left out", left_out,
                        plural(all, "different stack")));
  const auto unit = fold::exports::add_folded(counts, options.to->has_times, profile);
  if (unit.in_one > 1)
    io.note(fmt::format("counts have fractions: the profile is in {}", unit.name));
  if (unit.rounded > 0)
    io.note(fmt::format("{} rounded to whole {}", plural(unit.rounded, "count"),
                        unit.in_one > 1 ? unit.name : "numbers"));
  if (profile.sums().empty())
    throw Error("--to: no stack in the input, so there is no profile to write");
  options.to->write(profile, taken.first_event, io.out);
  if (profile.saturated() || counts.saturated())
    io.report("some counts exceed 2^63 and were capped");
}

void set_timeline(const fold::Options& options, folded::FoldedCounts& counts) {
  if (!options.every_ns)
    return;
  // As in stream_collapser.cpp: waits are in microseconds, or as their period is.
  const std::uint64_t ns_per_count = options.weight == fold::Weight::kPeriod ? 1 : kNsPerUs;
  counts.set_timeline(folded::Timeline(*options.every_ns, ns_per_count));
}

int work(const CommandLine& line, Io& io) {
  fold::Options options = fold::read_options(line);
  if (options.to != nullptr && options.to->is_binary && io.out.is_terminal())
    throw Error("standard output is a terminal (write the profile to a file: -o FILE)");
  fold::Refiner refiner(options);
  folded::FrameTable frames;
  folded::FoldedCounts counts(frames);
  folded::FoldedCounts refined(frames);
  set_timeline(options, counts);
  fold::exports::Profile profile;
  Taken taken{.counts = counts, .profile = profile};
  bool is_whole = true;
  // Opens all inputs first: a missing file must not waste the work on the others.
  std::vector<Input> inputs;
  inputs.reserve(line.operands.size());
  for (const std::string& path : line.operands)
    inputs.push_back(Input::open(path, io.in_fd));
  if (options.merges_sorted)
    return fold::merge_sorted(std::move(inputs), options, io) ? kOk : kFailure;
  const std::size_t at_once = read_at_once(inputs, options);
  for (std::span<Input> left = inputs; !left.empty(); left = left.subspan(at_once)) {
    if (options.time && options.time->needs_end())
      options.end_us = end_of(left.front().twin(), options);
    is_whole = take_inputs(left.first(at_once), options, taken, io) && is_whole;
  }
  if (!refiner.is_idle())
    refine(counts, refiner, refined, io);
  folded::FoldedCounts& kept = refiner.is_idle() ? counts : refined;
  if (options.with_facts && inputs.size() == 1)  // the facts of several are not those of their sum
    io.out.write(taken.facts);
  if (options.to == nullptr)
    write_folded(kept, io);
  else
    write_export(kept, taken, options, io);
  return is_whole ? kOk : kFailure;
}

}  // namespace

const Tool kStackfold{
    .name = "stackfold",
    .synopsis = "[OPTION]... [FILE]...",
    .summary = "Fold the stacks of a sample stream or of a profiler's text into folded text.",
    .add_options = fold::add_options,
    .work = work,
    .perl_names = fold::kPerlNames,
    .is_filter = true,
    .add_compatible_options = fold::add_compatible_options,
    .compatible_with = "stackcollapse-perf.pl",
};

}  // namespace pe

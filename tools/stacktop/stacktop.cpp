// SPDX-License-Identifier: MIT
#include "stacktop/stacktop.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "folded/folded_reader.h"
#include "painting/tree/tree_builder.h"
#include "stacktop/data_report.h"
#include "stacktop/hints.h"
#include "stacktop/options.h"
#include "stacktop/report.h"
#include "stacktop/span_report.h"
#include "stacktop/text_report.h"
#include "stacktop/wait_stacks.h"

namespace pe {
namespace {

using painting::CallTree;
using stacktop::Format;
using stacktop::Hints;
using stacktop::Options;
using stacktop::Report;

struct Profile {
  CallTree tree;
  std::vector<painting::Count> waits = {};  ///< the part of each node's total; empty: no waits
  folded::MalformedLines malformed = {};
  std::string unit = "samples";  ///< by the facts
};

std::string unit_of(const folded::FoldedReader& reader) {
  for (const folded::Fact& fact : reader.facts())
    if (fact.key == "unit")
      return fact.value;
  return "samples";
}

/// `cuts_waits`: see WaitStacks.
Profile read_profile(const std::vector<std::string>& files, int stdin_fd, bool cuts_waits) {
  folded::FoldedReader reader(files, stdin_fd, std::nullopt);
  painting::TreeBuilder builder;
  stacktop::WaitStacks waits;
  bool has_waits = false, has_others = false;
  while (const auto line = reader.next()) {
    if (cuts_waits && !has_waits && !has_others)
      waits.read(reader.facts());
    const std::string_view stack = cuts_waits ? waits.cut(line->stack) : line->stack;
    builder.add_to(0, stack, line->count);
    if (waits.is_wait())
      builder.add_to(1, stack, line->count);
    (waits.is_wait() ? has_waits : has_others) = true;
  }
  if (!has_waits || !has_others)
    return {.tree = std::move(builder).finish_union(1).tree,
            .malformed = reader.malformed(),
            .unit = unit_of(reader)};
  painting::ProfileUnion both = std::move(builder).finish_union(2);
  return {.tree = std::move(both.tree),
          .waits = std::move(both.profiles[1].total),
          .malformed = reader.malformed(),
          .unit = unit_of(reader)};
}

/// Reports all input that was skipped, and totals that look wrong.  Throws Error if nothing of the
/// input is folded text.
void report_input(const Profile& profile, const Io& io) {
  const CallTree& tree = profile.tree;
  const auto total = tree.total(painting::kRoot);
  if (profile.malformed.count > 0)
    io.note(profile.malformed.describe());
  const std::string no_stacks =
      std::string("no stack with a count in the input") +
      (profile.malformed.count > 0 ? " (fold a profiler's text with stackfold first)" : "");
  if (profile.malformed.count > 0 && tree.size() == 1 && total.is_zero())
    throw Error(no_stacks);
  if (profile.malformed.is_two_columns)
    io.note("two counts per line: the second is shown (flamediff compares them)");
  if (tree.saturated())
    io.report("the counts overflow 64 bits: sums are wrong");
  if (const auto nameless = tree.self(painting::kRoot); !nameless.is_zero())
    io.note(fmt::format(
        "{:.1f} % of the counts are in stacks with only empty frames, which no line shows",
        stacktop::percent_of(nameless, total)));
  if (total.is_zero())
    io.note(no_stacks);
}

Hints read_hints(const Options& options, const Io& io) {
  Hints hints = stacktop::load_hints(options.hint_files);
  if (hints.ignored() > 0)
    io.note(fmt::format("hints: ignored {}; first: {}", plural(hints.ignored(), "line"),
                        hints.first_ignored()));
  if (hints.size() == 0)
    io.note("--hints: the hints file is not installed");
  return hints;
}

/// Warns if a line is for frames without a module: the text was probably made without
/// `stackfold --modules`.
void report_modules(const Report& report, const Io& io) {
  const auto unknown =
      std::find_if(report.lines.begin(), report.lines.end(),
                   [](const stacktop::Line& line) { return line.name == stacktop::kNoModule; });
  if (unknown != report.lines.end())
    io.note(
        fmt::format("--by module: {:.1f} % of the counts end in frames without a module (add "
                    "modules: stackfold --modules)",
                    stacktop::percent_of(unknown->sums.self, report.all)));
}

/// Writes the table of --spans, and reports what it lacks.
int report_spans(const CommandLine& line, const Options& options, Io& io) {
  if (line.operands.size() != 1)
    throw UsageError("--spans: one recording at a time");
  Input input = Input::open(line.operands.front(), io.in_fd);
  const stacktop::SpanReport report = stacktop::read_spans(input);
  write_spans(report, options, io.out);
  for (const stacktop::SpanLine& spans : report.lines)
    if (const std::string counts = stream::describe(spans.counts); !counts.empty())
      io.note(fmt::format("{}: {}{}", stacktop::shown(spans.function),
                          plural(spans.counts.calls, "call"), counts));
  if (const std::string losses = stream::describe_losses(report.losses); !losses.empty())
    io.note(input.name() + ": " + losses);
  if (report.malformed > 0)
    io.note(
        fmt::format("{}: {} skipped", input.name(), plural(report.malformed, "malformed mark")));
  if (!report.damage.empty())
    io.report(input.name() + ": " + report.damage);
  return report.damage.empty() ? kOk : kFailure;
}

int work(const CommandLine& line, Io& io) {
  const Options options = stacktop::read_options(line);
  if (options.has_spans)
    return report_spans(line, options, io);
  const Hints hints = options.has_hints ? read_hints(options, io) : Hints();
  // Reports on one function, or on modules, need the frames below the program's.
  const bool cuts_waits = !options.function && options.by != stacktop::By::kModule;
  const Profile profile = read_profile(line.operands, io.in_fd, cuts_waits);
  report_input(profile, io);
  Report report = stacktop::make_report(profile.tree, options, profile.waits);
  report.unit = profile.unit;
  if (options.by == stacktop::By::kModule)
    report_modules(report, io);
  if (options.has_hints)
    stacktop::attach_hints(report, hints);
  switch (options.format) {
    case Format::kText:
      write_text(report, stacktop::look_of(io.out, options), io.out);
      break;
    case Format::kJson:
      write_json(report, io.out);
      break;
    case Format::kTsv:
      write_tsv(report, io.out);
      break;
    case Format::kMarkdown:
      write_markdown(report, io.out);
      break;
  }
  return kOk;
}

}  // namespace

const Tool kStacktop{
    .name = "stacktop",
    .synopsis = "[OPTION]... [FILE]...",
    .summary = "Print the hot spots of folded stacks in a table.",
    .add_options = stacktop::add_options,
    .work = work,
    .is_filter = true,
};

}  // namespace pe

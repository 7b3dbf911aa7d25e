// SPDX-License-Identifier: MIT
#include "stacktop/stacktop.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "base/plural.h"
#include "base/quote.h"
#include "folded/folded_reader.h"
#include "picture/tree/tree_builder.h"
#include "stacktop/data_report.h"
#include "stacktop/hint_files.h"
#include "stacktop/look.h"
#include "stacktop/options.h"
#include "stacktop/report.h"
#include "stacktop/text_report.h"

namespace pe {
namespace {

using picture::CallTree;
using stacktop::Format;
using stacktop::Hints;
using stacktop::Options;
using stacktop::Report;

struct Profile {
  CallTree tree;
  folded::MalformedLines malformed;
};

void warn(Io& io, const std::string& what) {
  io.err.write(fmt::format("stacktop: {}\n", printable(what)));
  io.err.flush();
}

Profile read_profile(const std::vector<std::string>& files, int stdin_fd) {
  folded::FoldedReader reader(files, stdin_fd, std::nullopt);
  picture::TreeBuilder builder;
  while (const auto line = reader.next())
    builder.add(line->stack, line->count);
  return {.tree = std::move(builder).finish(), .malformed = reader.malformed()};
}

/// Reports all input that was skipped, and totals that look wrong.
void report_input(const Profile& profile, Io& io) {
  if (profile.malformed.count > 0)
    warn(io, profile.malformed.describe());
  if (profile.malformed.is_two_columns)
    warn(io, "two counts a line: the second is shown; flamediff compares them");
  if (profile.tree.saturated())
    warn(io, "the counts add up to more than 64 bits hold: sums are wrong");
  if (const auto nameless = profile.tree.self(picture::kRoot); !nameless.is_zero())
    warn(io, fmt::format("{:.1f} % of the counts are of stacks whose frames are all empty: "
                         "no line shows them",
                         stacktop::percent_of(nameless, profile.tree.total(picture::kRoot))));
  if (!profile.tree.total(picture::kRoot).is_zero())
    return;
  warn(io, "no stack with a count in the input");
}

/// Throws Error if the input is only a sample stream.  A report of its malformed lines would not
/// help the user.
void refuse_stream(const Profile& profile) {
  const std::size_t place = profile.malformed.first.find(": 'PERFILE2");
  if (place != std::string::npos && profile.tree.total(picture::kRoot).is_zero())
    throw Error(
        fmt::format("{}: this is a sample stream: pipe it through pe-symbolize and stackfold first",
                    printable(profile.malformed.first.substr(0, place))));
}

Hints read_hints(const Options& options, Io& io) {
  Hints hints = stacktop::load_hints(options.hint_files);
  if (hints.ignored() > 0)
    warn(io, fmt::format("hints: ignored {}; first: {}", plural(hints.ignored(), "line"),
                         hints.first_ignored()));
  if (hints.size() == 0)
    warn(io, "--hints: there are none: the file of hints is not installed");
  return hints;
}

/// Warns if a line is for frames without a module: the text was probably made without
/// `stackfold --modules`.
void report_modules(const Report& report, Io& io) {
  const auto unknown =
      std::find_if(report.lines.begin(), report.lines.end(),
                   [](const stacktop::Line& line) { return line.name == stacktop::kNoModule; });
  if (unknown != report.lines.end())
    warn(io, fmt::format("--by module: {:.1f} % of the counts end in frames whose text does not "
                         "tell their module; stackfold --modules puts it there",
                         stacktop::percent_of(unknown->sums.self, report.all)));
}

int work(const CommandLine& line, Io& io) {
  const Options options = stacktop::read_options(line);
  const Hints hints = options.has_hints ? read_hints(options, io) : Hints();
  const Profile profile = read_profile(line.operands, io.in_fd);
  refuse_stream(profile);
  report_input(profile, io);
  Report report = stacktop::make_report(profile.tree, options);
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
  }
  const bool is_nothing_of_it_folded =
      profile.malformed.count > 0 && profile.tree.size() == 1 && report.all.is_zero();
  return is_nothing_of_it_folded ? kFailure : kOk;
}

}  // namespace

const Tool kStacktop{
    .name = "stacktop",
    .synopsis = "[OPTION]... [FILE]...",
    .summary = "Tell the hot spots of folded stacks in a table.",
    .add_options = stacktop::add_options,
    .work = work,
};

}  // namespace pe

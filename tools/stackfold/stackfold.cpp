// SPDX-License-Identifier: MIT
#include "stackfold/stackfold.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/plural.h"
#include "folded/folded_reader.h"
#include "stackfold/detect.h"
#include "stackfold/formats/format.h"
#include "stackfold/options.h"
#include "stackfold/stream_folder.h"

namespace pe {
namespace {

void say(cli::Io& io, const std::string& what) { io.err.write("stackfold: " + what + "\n"); }

std::string other_events(std::uint64_t samples, const std::string& folded_event) {
  return fmt::format("{} of other events left out (folded: {}; see --event)",
                     plural(samples, "sample"), folded_event.empty() ? "none" : folded_event);
}

/// What is missing from the output, in one line; empty if nothing is.
std::string losses(const fold::StreamReport& report) {
  std::string text = session::describe_losses(report.counts);
  const auto add = [&text](const std::string& more) { text += (text.empty() ? "" : ", ") + more; };
  if (report.undefined_symbols > 0)
    add(plural(report.undefined_symbols, "malformed name"));
  if (report.other_events > 0)
    add(other_events(report.other_events, report.folded_event));
  return text;
}

/// false if the input was damaged; what could be read is in `counts`.
bool fold_stream(io::Input& input, const fold::Options& options, folded::FoldedCounts& counts,
                 cli::Io& io) {
  const fold::StreamReport report = fold::StreamFolder(input, options, counts).fold();
  if (options.event && std::find(report.events.begin(), report.events.end(), *options.event) ==
                           report.events.end()) {
    say(io, fmt::format("{}: no event '{}': it has {}", input.name(), *options.event,
                        fmt::join(report.events, ", ")));
    return false;
  }
  if (const std::string missing = losses(report); !missing.empty())
    say(io, fmt::format("{}: {} read; {}", input.name(), plural(report.counts.samples, "sample"),
                        missing));
  if (!report.damage.empty())
    say(io, input.name() + ": " + report.damage);
  return report.damage.empty();
}

/// false if nothing in the input was of the format.
bool fold_text(io::Input& input, const fold::Options& options, const fold::Format& format,
               folded::FoldedCounts& counts, cli::Io& io) {
  const fold::TextReport report = format.fold(input, options, counts);
  if (report.other_events > 0)
    say(io, fmt::format("{}: {} read; {}", input.name(), plural(report.samples, "sample"),
                        other_events(report.other_events, report.folded_event)));
  if (report.ignored_lines > 0)
    say(io, fmt::format("ignored {}; first: {}", plural(report.ignored_lines, "unknown line"),
                        report.first_ignored));
  for (const std::string& what : {report.left_out, report.damage})
    if (!what.empty())
      say(io, fmt::format("{}: {}", input.name(), what));
  return report.damage.empty() &&
         (report.samples + report.other_events > 0 || report.ignored_lines == 0);
}

/// false if nothing in the input was of the format.
bool fold_folded(io::Input input, folded::FoldedCounts& counts, cli::Io& io) {
  folded::FoldedReader reader(std::move(input));
  bool is_any = false;
  while (const auto line = reader.next()) {
    counts.add(line->stack, line->count);
    is_any = true;
  }
  if (reader.malformed().count > 0)
    say(io, reader.malformed().describe());
  return is_any || reader.malformed().count == 0;
}

/// false if the input was damaged, or nothing of any known form.
bool fold_input(io::Input input, const fold::Options& options, folded::FoldedCounts& counts,
                cli::Io& io) {
  const fold::Format& format = options.from != nullptr ? *options.from : fold::detect(input);
  if (format.fold != nullptr)
    return fold_text(input, options, format, counts, io);
  if (&format == &fold::stream_format())
    return fold_stream(input, options, counts, io);
  return fold_folded(std::move(input), counts, io);
}

int work(const cli::CommandLine& line, cli::Io& io) {
  const fold::Options options = fold::read_options(line);
  folded::FrameTable frames;
  folded::FoldedCounts counts(frames);
  bool is_whole = true;
  std::vector<io::Input>
      inputs;  // all are opened first: one that is missing must not cost what others hold
  for (const std::string& path : line.operands)
    inputs.push_back(io::Input::open(path, io.in_fd));
  for (io::Input& input : inputs)
    is_whole = fold_input(std::move(input), options, counts, io) && is_whole;
  counts.write(io.out);
  if (counts.saturated())
    say(io, "some counts are over 2^64 and stay at the largest number");
  io.err.flush();
  return is_whole ? cli::kOk : cli::kFailure;
}

}  // namespace

const cli::Tool kStackfold{
    .name = "stackfold",
    .synopsis = "[OPTION]... [FILE]...",
    .summary = "Fold the stacks of a sample stream, or of many profilers' text, into folded text.",
    .add_options = fold::add_options,
    .work = work,
};

int stackfold_main(std::span<const std::string> args, cli::Io& io) {
  return cli::run(kStackfold, args, io);
}

}  // namespace pe

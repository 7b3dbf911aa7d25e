// SPDX-License-Identifier: MIT
#include "stackfold/stackfold.h"

#include <fmt/format.h>

#include "base/plural.h"
#include "folded/folded_reader.h"
#include "stackfold/options.h"
#include "stackfold/stream_folder.h"

namespace pe {
namespace {

void say(cli::Io& io, const std::string& what) { io.err.write("stackfold: " + what + "\n"); }

bool is_stream(io::Input& input) {
  const Bytes head = input.peek(sizeof perf::kMagic);
  if (head.size() < sizeof perf::kMagic)
    return false;
  const std::uint64_t magic = perf::U64View(head)[0];
  return magic == perf::kMagic || magic == perf::kMagicOtherByteOrder;
}

/// What is missing from the output, in one line; empty if nothing is.
std::string losses(const fold::StreamReport& report) {
  std::string text = session::describe_losses(report.counts);
  const auto add = [&text](const std::string& more) { text += (text.empty() ? "" : ", ") + more; };
  if (report.undefined_symbols > 0)
    add(plural(report.undefined_symbols, "malformed name"));
  if (report.other_events > 0)
    add(fmt::format("{} of other events left out (folded: {}; see --event)",
                    plural(report.other_events, "sample"),
                    report.folded_event.empty() ? "none" : report.folded_event));
  return text;
}

/// false if the input was damaged; what could be read is in `counts`.
bool fold_stream(io::Input& input, const fold::Options& options, folded::FoldedCounts& counts,
                 cli::Io& io) {
  const fold::StreamReport report = fold::StreamFolder(input, options, counts).fold();
  if (const std::string missing = losses(report); !missing.empty())
    say(io, fmt::format("{}: {} read; {}", input.name(), plural(report.counts.samples, "sample"),
                        missing));
  if (!report.damage.empty())
    say(io, input.name() + ": " + report.damage);
  return report.damage.empty();
}

void fold_text(io::Input input, folded::FoldedCounts& counts, cli::Io& io) {
  folded::FoldedReader reader(std::move(input));
  while (const auto line = reader.next())
    counts.add(line->stack, line->count);
  if (reader.malformed().count > 0)
    say(io, reader.malformed().describe());
}

int work(const cli::CommandLine& line, cli::Io& io) {
  const fold::Options options = fold::read_options(line);
  folded::FrameTable frames;
  folded::FoldedCounts counts(frames);
  bool is_whole = true;
  for (const std::string& path : line.operands) {
    io::Input input = io::Input::open(path, io.in_fd);
    if (is_stream(input))
      is_whole = fold_stream(input, options, counts, io) && is_whole;
    else
      fold_text(std::move(input), counts, io);
  }
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
    .summary = "Fold a sample stream, or folded text, into folded text.",
    .add_options = fold::add_options,
    .work = work,
};

int stackfold_main(std::span<const std::string> args, cli::Io& io) {
  return cli::run(kStackfold, args, io);
}

}  // namespace pe

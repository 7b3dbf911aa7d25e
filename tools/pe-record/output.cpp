// SPDX-License-Identifier: MIT
#include "pe-record/output.h"

#include <fmt/format.h>

#include "base/plural.h"
#include "base/quote.h"

namespace pe::record {

void say(cli::Io& io, const std::string& what) {
  io.err.write("pe-record: " + printable(what) + "\n");
  io.err.flush();
}

bool writes_file(const Options& options) {
  return !options.output.empty() && options.output != "-";
}

Output::Output(const Options& options, cli::Io& io, recording::Ending& ending)
    : file_(writes_file(options)
                ? std::optional<io::FileOutput>(std::in_place, options.output, io::Named::kAtOnce)
                : std::nullopt),
      out_(file_ ? *file_ : io.out),
      writer_(out_) {
  out_.wait_by([&ending](int fd) { return ending.wait_for_room(fd); });
}

void tell_stall(recording::Ending& ending, const Options& options, cli::Io& io) {
  if (!options.quiet)
    ending.on_stall([&io] { say(io, recording::kReaderStalls); });
}

std::string closing_line(const recording::Passed& passed, const recording::RecordedStream& stream,
                         const recording::OwnCost& cost) {
  std::string line =
      fmt::format("{}, {} lost, {} seen; {}", plural(passed.samples, "sample"), passed.lost.count(),
                  plural(passed.threads.size(), "thread"), cost.describe());
  if (passed.throttled > 0)
    line += fmt::format("; throttled {}", plural(passed.throttled, "time"));
  if (const auto* unwinder = stream.unwinder())
    if (const std::string stacks = stacks::describe(unwinder->counts()); !stacks.empty())
      line += "; " + stacks;
  return line;
}

}  // namespace pe::record

// SPDX-License-Identifier: MIT
#include "pe-record/output.h"

#include <fmt/format.h>

#include "base/plural.h"
#include "base/quote.h"

namespace pe::recorder {

void say(Io& io, const std::string& what) {
  io.err.write("pe-record: " + printable(what) + "\n");
  io.err.flush();
}

bool writes_file(const Options& options) {
  return !options.output.empty() && options.output != "-";
}

StreamOutput::StreamOutput(const Options& options, Io& io, record::Ending& ending)
    : file_(writes_file(options)
                ? std::optional<FileOutput>(std::in_place, options.output, Named::kAtOnce)
                : std::nullopt),
      out_(file_ ? *file_ : io.out),
      writer_(out_) {
  out_.wait_by([&ending](int fd) { return ending.wait_for_room(fd); });
}

void tell_stall(record::Ending& ending, const Options& options, Io& io) {
  if (!options.quiet)
    ending.on_stall([&io] { say(io, record::kReaderStalls); });
}

std::string closing_line(const record::Passed& passed, const record::RecordedStream& stream,
                         const record::OwnCost& cost) {
  std::string line =
      fmt::format("{}, {} lost, {} seen; {}", plural(passed.samples, "sample"), passed.lost.count(),
                  plural(passed.threads.size(), "thread"), cost.describe());
  if (passed.throttled > 0)
    line += fmt::format("; throttled {}", plural(passed.throttled, "time"));
  if (const auto* unwinder = stream.unwinder())
    if (const std::string stacks = unwind::describe(unwinder->counts()); !stacks.empty())
      line += "; " + stacks;
  return line;
}

}  // namespace pe::recorder

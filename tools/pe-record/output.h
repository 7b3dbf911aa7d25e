// Where a recording goes, and what is said beside it.
// SPDX-License-Identifier: MIT
#pragma once

#include <optional>
#include <string>

#include "cli/run.h"
#include "pe-record/options.h"
#include "perf/stream_writer.h"
#include "recording/drain.h"
#include "recording/ending.h"
#include "recording/own_cost.h"
#include "recording/recorded_stream.h"

namespace pe::record {

/// A line on standard error.
void say(cli::Io& io, const std::string& what);

/// To a file, not to standard output?
bool writes_file(const Options& options);

/// The stream's way out: opened late, for a recording that cannot be made must not cost an older
/// one its file.
class Output {
 public:
  /// `io` and `ending`, which waits for a slow reader, must outlive this.  Throws Error.
  Output(const Options& options, cli::Io& io, recording::Ending& ending);

  [[nodiscard]] perf::StreamWriter& writer() noexcept { return writer_; }
  [[nodiscard]] int fd() const { return out_.fd(); }

 private:
  std::optional<io::FileOutput> file_;
  io::Output& out_;
  perf::StreamWriter writer_;
};

/// "1234 samples, 0 lost, 1 thread seen; own CPU …", with what became of the stacks.
std::string closing_line(const recording::Passed& passed, const recording::RecordedStream& stream,
                         const recording::OwnCost& cost);

/// Says so where the recording is over and the reader of the stream takes nothing.
void tell_stall(recording::Ending& ending, const Options& options, cli::Io& io);

}  // namespace pe::record

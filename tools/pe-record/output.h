// Where a recording goes, and what is said beside it.
// SPDX-License-Identifier: MIT
#pragma once

#include <optional>
#include <string>

#include "base/cli/run.h"
#include "pe-record/options.h"
#include "record/ending.h"
#include "record/own_cost.h"
#include "record/stream/drain.h"
#include "record/stream/recorded_stream.h"
#include "stream/stream_writer.h"

namespace pe::recorder {

/// A line on standard error.
void say(Io& io, const std::string& what);

/// To a file, not to standard output?
bool writes_file(const Options& options);

/// The stream's way out: opened late, for a recording that cannot be made must not cost an older
/// one its file.
class StreamOutput {
 public:
  /// `io` and `ending`, which waits for a slow reader, must outlive this.  Throws Error.
  StreamOutput(const Options& options, Io& io, record::Ending& ending);

  [[nodiscard]] stream::StreamWriter& writer() noexcept { return writer_; }
  [[nodiscard]] int fd() const { return out_.fd(); }

 private:
  std::optional<FileOutput> file_;
  Output& out_;
  stream::StreamWriter writer_;
};

/// "1234 samples, 0 lost, 1 thread seen; own CPU …", with what became of the stacks.
std::string closing_line(const record::Passed& passed, const record::RecordedStream& stream,
                         const record::OwnCost& cost);

/// Says so where the recording is over and the reader of the stream takes nothing.
void tell_stall(record::Ending& ending, const Options& options, Io& io);

}  // namespace pe::recorder

// A recording that keeps only its last minutes: a folder of segments, files of some seconds each.
//
// A segment is a whole stream.  Its first record is a FINISHED_ROUND with kMiscSegment, because
// perf ignores what such a record holds:
//
//     u64 boot, run, number, start_ns, wall_ns, head_bytes        (SegmentHead)
//
// After it come the events, and what is known of all processes: their threads, mappings and command
// lines, without times.  A reader that comes from the segment before skips this head.  The content
// is compressed, as perf record -z does; each segment has a Zstandard stream for the head, and one
// for the rest.
//
// Segments of several recorders, one after the other, may be in the folder, and also some from
// before the machine was started again.  The clock of these is another one, so a reader takes the
// segments of one start of the machine only.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/io/input.h"
#include "stream/records/record.h"
#include "stream/stream_writer.h"
#include "stream/time_range.h"

namespace pe::stream {

struct SegmentHead {
  std::uint64_t boot = 0;        ///< boot_number() of the recorder
  std::uint64_t run = 0;         ///< of the recorder: a later one has another number
  std::uint64_t number = 0;      ///< in its name; the next segment of the run has the next number
  std::uint64_t start_ns = 0;    ///< when it was begun, on the clock of the samples
  std::uint64_t wall_ns = 0;     ///< the same moment, since 1970
  std::uint64_t head_bytes = 0;  ///< of the file, to the end of the head

  /// Does it go on where `before` ends?
  [[nodiscard]] bool continues(const SegmentHead& before) const noexcept {
    return boot == before.boot && run == before.run && number == before.number + 1;
  }
};
/// Returns nullopt if the record is malformed or another one.
std::optional<SegmentHead> parse_segment_head(const Record& record);
/// Starts and finishes the record.
std::string_view build_segment_head(RecordBuilder& builder, const SegmentHead& head);

/// Leaves the segments that were recorded since the machine was last started.  Returns how many it
/// leaves out, damaged ones included.
std::size_t choose_last_boot(Input& input);

/// Leaves the segments that a range needs: those of one start of the machine.  Returns the times of
/// these, whose ends are those of the segments; the last one is that of the last sample.  Throws
/// Error if nothing was kept from that range.
RecordingTimes choose_times(Input& input, const TimeRange& range);

/// Returns the time of the last sample of a stream in microseconds; 0 if there is none.  Throws
/// Error if it is not a stream.
std::uint64_t last_sample_us(Input& input);

}  // namespace pe::stream

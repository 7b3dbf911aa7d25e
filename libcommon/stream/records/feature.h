// Records of a feature describe the whole recording: where, how and when it was made.
//
// A pipe has HEADER_FEATURE records; a perf.data file has the same data in sections at its end,
// which StreamReader returns as such records.
// Source: tools/perf/Documentation/perf.data-file-format.txt, tools/perf/util/header.h.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "stream/records/record.h"

namespace pe::stream {

/// The features that are read.
enum Feature : std::uint64_t {
  kFeatureTracingData = 1,
  kFeatureHostName = 3,
  kFeatureVersion = 5,       ///< of the recorder
  kFeatureCommandLine = 11,  ///< of the recorder
  kFeatureEventNames = 12,   ///< of a perf.data file; a pipe has EVENT_UPDATE records
  kFeatureDirectory = 24,    ///< the file is "data" in a folder (HEADER_DIR_FORMAT)
  kFeatureClockData = 29,
};

/// After the version of our recorders follow the version of the stream and the engine's name:
/// "stackpipe 0.1.0 (1d4815c7e2aa), stream 1, engine bpf".  perf prints the text as it is.
inline constexpr std::string_view kStreamMark = ", stream ";
inline constexpr std::string_view kEngineMark = ", engine ";

/// The version of the sample stream (pe-stream(5)).  It grows if an older reader would misread a
/// stream.  A stream without the mark has version 1.
inline constexpr unsigned kStreamVersion = 1;

/// One HEADER_FEATURE record.  The data lives as long as the record.
struct FeatureRecord {
  std::uint64_t feature = 0;
  Bytes data;

  /// Returns the text of a host name or a version; nullopt if it is malformed.
  [[nodiscard]] std::optional<std::string> text() const;
  /// Returns the words of a command line, joined by blanks; a word with blanks is in ' or ".
  /// nullopt if it is malformed.
  [[nodiscard]] std::optional<std::string> command_line() const;
  /// Likewise of the command that follows "--"; the whole line if there is no "--".
  [[nodiscard]] std::optional<std::string> recorded_command() const;
};
std::optional<FeatureRecord> parse_feature(const Record& record);

/// Does the record say that the stream has a later version than ours?
bool is_of_later_version(const Record& record);

/// The same moment on two clocks.
struct ClockData {
  std::uint64_t wall_ns = 0;   ///< since 1970
  std::uint64_t clock_ns = 0;  ///< on the clock of the samples

  /// Returns the time since 1970 of a sample; nullopt if it does not fit.
  [[nodiscard]] std::optional<std::uint64_t> wall_of(std::uint64_t time_ns) const;
};
/// Returns nullopt if the record is malformed or of another feature.
std::optional<ClockData> parse_clock_data(const FeatureRecord& record);

}  // namespace pe::stream

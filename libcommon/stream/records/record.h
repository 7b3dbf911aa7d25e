// Records of the sample stream, and their type numbers.
//
// The stream is perf's own pipe format; pe-stream(5) describes it.  The kernel writes the types
// below 64 (perf_event_open(2), linux/perf_event.h).  perf writes the types from 64 on
// (tools/perf/Documentation/perf.data-file-format.txt).  Those from 0x50450001 on are ours.
// SPDX-License-Identifier: MIT
#pragma once

#include <linux/perf_event.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>

#include "base/byte_reader.h"

namespace pe::stream {

/// Record types of perf itself, and ours.
enum RecordType : std::uint32_t {
  kRecordCallChainDeferred = 22,  ///< from Linux 6.19 on
  kRecordHeaderAttr = 64,
  kRecordTracingData = 66,  ///< followed by bytes that its own size does not cover
  kRecordHeaderBuildId = 67,
  kRecordFinishedRound = 68,
  kRecordAuxtrace = 71,  ///< followed by bytes that its own size does not cover
  kRecordEventUpdate = 78,
  kRecordHeaderFeature = 80,
  kRecordCompressed = 81,
  kRecordCompressed2 = 83,  ///< from Linux 6.16 on
  kRecordFirstOfPerf = 64,
  kRecordSymbol = 0x50450001,
  kRecordLocation = 0x50450002,
};

/// In the misc field of a HEADER_ATTR of ours: its ids continue those of the previous one.
inline constexpr std::uint16_t kMiscMoreIds = 1;

/// In the misc field of a FINISHED_ROUND of ours: more rounds follow, and a stream that ends with
/// it was cut off.  (perf always writes 0, also in the last one.)
inline constexpr std::uint16_t kMiscMoreRounds = 1;
/// In the misc field of a FINISHED_ROUND of ours: all records after it are in order of time.
inline constexpr std::uint16_t kMiscInOrder = 2;
/// In the misc field of a FINISHED_ROUND of ours: it is the first record of a segment (segments.h).
inline constexpr std::uint16_t kMiscSegment = 4;

/// The names of the events of a recording of all that threads do: when they waited, and samples of
/// their time on CPUs.
inline constexpr std::string_view kWaitEvent = "offcpu", kCpuEvent = "cpu";
/// The name of the event whose samples are parts of waits: the time in which no thread of the
/// target ran.  A sample with pid 0 is the time of the whole recording.
inline constexpr std::string_view kSilenceEvent = "silence";
/// The weight of a sample of kWaitEvent and kSilenceEvent: what the thread waited for.  That of
/// kCpuEvent is the number of the target's threads that ran.
enum class WaitKind : std::uint8_t { kOther, kReady, kLock, kSleep, kIo, kFault, kChild };
inline constexpr std::size_t kWaitKinds = 7;
/// The same for a sample of kSilenceEvent: records were lost, so some thread may have run.
inline constexpr std::uint64_t kLostSilence = kWaitKinds;
/// The name of the event whose samples report which thread ended the wait of the next sample, if
/// that has the same time.
inline constexpr std::string_view kWakerEvent = "offcpu-waker";
/// The same for a wait of the next sample's thread, which is itself a waker.
inline constexpr std::string_view kEarlierWakerEvent = "offcpu-earlier-waker";
/// The same of waits for locks, which are charged to the stack that released the lock.
inline constexpr std::string_view kHolderEvent = "offcpu-holder";
/// The name of the event whose samples are times for which threads held locks, with the stacks that
/// had waited for these.
inline constexpr std::string_view kHeldEvent = "offcpu-held";
/// In a sample of the events of wakers with pid 0, the tid is what ended the wait.
enum EndOfWait : std::uint32_t { kEndedByInterrupt, kEndedByTimeout, kEndedBySignal };
/// The bit of a lock's address that is set if the end of a thread ended the wait.  A futex is at a
/// multiple of four.
inline constexpr std::uint64_t kEndOfThreadBit = 1;

/// In the misc field of a sample whose event is in nanoseconds: the wait had not ended when the
/// recording ended.
inline constexpr std::uint16_t kMiscUnfinished = 1U << 13;

/// In the misc field of a sample: we walked the program's stack by its unwind tables, up to the
/// thread's first function or not.  A sample with neither was not walked so.  Bits 3 to 12 have no
/// meaning in samples of the kernel and perf.
inline constexpr std::uint16_t kMiscComplete = 1U << 11;
inline constexpr std::uint16_t kMiscIncomplete = 1U << 12;
inline constexpr std::uint16_t kMiscWalked = kMiscComplete | kMiscIncomplete;
/// Returns the bit of a sample whose stack was walked.
constexpr std::uint16_t misc_of_walk(bool is_complete) noexcept {
  return is_complete ? kMiscComplete : kMiscIncomplete;
}

/// The kind of data in an EVENT_UPDATE record; tools/perf: enum event_update_type.
enum EventUpdate : std::uint64_t { kUpdateUnit = 0, kUpdateName = 2 };

/// The longest build id that a record can hold (linux/buildid.h, BUILD_ID_SIZE_MAX).
inline constexpr std::size_t kMaxBuildIdBytes = 20;

/// "PERFILE2" as a number in this machine's byte order.
inline constexpr std::uint64_t kMagic = 0x32454c4946524550;
inline constexpr std::uint64_t kMagicOtherByteOrder = 0x50455246494c4532;
inline constexpr std::uint64_t kPipeHeaderBytes = 16;

/// One record, as a view into a buffer that it does not own.
struct Record {
  std::uint32_t type = 0;
  std::uint16_t misc = 0;
  Bytes bytes;  ///< header, body, and the data after the record if its type has such data

  [[nodiscard]] Bytes body() const noexcept { return bytes.subspan(sizeof(perf_event_header)); }
  [[nodiscard]] bool is_sample() const noexcept { return type == PERF_RECORD_SAMPLE; }
  [[nodiscard]] bool is_compressed() const noexcept {
    return type == kRecordCompressed || type == kRecordCompressed2;
  }
  [[nodiscard]] bool is_segment_head() const noexcept {
    return type == kRecordFinishedRound && (misc & kMiscSegment) != 0;
  }
  [[nodiscard]] bool is_ours() const noexcept {
    return type == kRecordSymbol || type == kRecordLocation;
  }
};

/// Views `bytes` (at least a header long) as a record.
inline Record view_record(Bytes bytes) noexcept {
  perf_event_header header;
  std::memcpy(&header, bytes.data(), sizeof header);
  return {header.type, header.misc, bytes};
}

/// Returns the next record.  Returns nullopt and does not advance at the end, or if the next bytes
/// are not a whole record.
inline std::optional<Record> take_record(ByteReader& reader) noexcept {
  ByteReader ahead(reader);
  const auto header = ahead.take<perf_event_header>();
  if (!header || header->size < sizeof *header)
    return std::nullopt;
  const auto bytes = reader.take_bytes(header->size);
  return bytes ? std::optional(view_record(*bytes)) : std::nullopt;
}

/// A view of numbers that may be at unaligned addresses, as in a damaged stream.
class U64View {
 public:
  U64View() noexcept = default;
  /// Views the first bytes.size() / 8 numbers.
  explicit U64View(Bytes bytes) noexcept : bytes_(bytes) {}

  [[nodiscard]] std::size_t size() const noexcept { return bytes_.size() / sizeof(std::uint64_t); }
  [[nodiscard]] std::uint64_t operator[](std::size_t i) const noexcept {
    std::uint64_t value;
    std::memcpy(&value, bytes_.data() + i * sizeof value, sizeof value);
    return value;
  }
  [[nodiscard]] Bytes bytes() const noexcept { return bytes_; }

 private:
  Bytes bytes_;
};

// Records of a feature describe the whole recording: where, how and when it was made.
//
// A pipe has HEADER_FEATURE records; a perf.data file has the same data in sections at its end,
// which StreamReader returns as such records.
// Source: tools/perf/Documentation/perf.data-file-format.txt, tools/perf/util/header.h.

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
/// Returns nullopt if the record is malformed or another one.
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

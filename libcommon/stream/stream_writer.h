// Writing a sample stream, in perf's pipe format.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/io/output.h"
#include "stream/records/sample.h"

namespace pe::stream {

/// Builds one record at a time.  Numbers in host order; strings with their NUL.
class RecordBuilder {
 public:
  /// Begins a record, forgetting the one before.
  RecordBuilder& begin(std::uint32_t type, std::uint16_t misc = 0);
  template <typename T>
  RecordBuilder& add(const T& value) {
    bytes_ += bytes_of(value);
    return *this;
  }
  RecordBuilder& add_bytes(std::string_view bytes) {
    bytes_ += bytes;
    return *this;
  }
  /// `text` and a NUL; what lies behind a NUL inside the text is dropped.
  RecordBuilder& add_string(std::string_view text);
  /// Fills up to a multiple of eight, as every record of the kernel is.
  RecordBuilder& pad();
  /// The finished record.  Throws Error if it is over 65,535 bytes, the most its size can say.
  std::string_view finish();

 private:
  std::string bytes_;
};

class StreamWriter {
 public:
  /// `out` must outlive the writer.
  explicit StreamWriter(Output& out) : out_(out) {}

  void write_header();
  void write_attr(const perf_event_attr& attr, std::span<const std::uint64_t> ids);
  /// EVENT_UPDATE, name: how perf and stackfold call the event.
  void write_event_name(std::uint64_t id, std::string_view name);
  /// EVENT_UPDATE, unit: "ns", "bytes" or "allocations" where the period of a sample is its weight.
  void write_event_unit(std::uint64_t id, std::string_view unit);
  void write_symbol(const SymbolRecord& symbol);
  void write_location(std::uint32_t pid, std::uint64_t address,
                      std::span<const std::uint64_t> symbol_ids);
  /// LOST_SAMPLES: what a counter has lost in all, as perf tells it at the end.  `attr` says what
  /// follows every record that is no sample, `id` is one of its event's.
  void write_lost_samples(const perf_event_attr& attr, std::uint64_t id, std::uint64_t lost);
  /// FINISHED_ROUND: everything older than the last round's newest record has been written, and
  /// more is to come.
  void write_finished_round();
  /// The last record of a whole stream: a FINISHED_ROUND behind which nothing comes.
  void write_end();
  /// A record as it came.
  void write(Bytes record);
  void flush() { out_.flush(); }

 private:
  Output& out_;
  RecordBuilder builder_;
};

}  // namespace pe::stream

// Writes a sample stream in perf's pipe format.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/io/output.h"
#include "stream/records/sample.h"

namespace pe::stream {

/// Builds one record at a time.  Numbers are in host order; strings include their NUL.
class RecordBuilder {
 public:
  /// Starts a record and discards the previous one.
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
  RecordBuilder& add_bytes(Bytes bytes) {
    return add_bytes(std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
  }
  /// Adds `text` and a NUL.  If the text contains a NUL, the bytes after it are dropped.
  RecordBuilder& add_string(std::string_view text);
  /// Pads the record to a multiple of eight bytes, like every record of the kernel.
  RecordBuilder& pad();
  /// Returns the finished record.  Throws Error if it exceeds 65,535 bytes, the limit of its size
  /// field.
  std::string_view finish();

 private:
  std::string bytes_;
};

/// The trailer that sample_id_all adds to records that are not samples.
struct SampleId {
  std::uint32_t pid = 0, tid = 0;
  std::uint64_t time_ns = 0;
  std::uint64_t id = 0;
};
/// Adds the trailer for events with `attr` (perf_event_open(2), struct sample_id).
void add_sample_id(RecordBuilder& builder, const perf_event_attr& attr, const SampleId& values);

class StreamWriter {
 public:
  /// `out` must outlive the writer.
  explicit StreamWriter(Output& out) : out_(out) {}

  void write_header();
  void write_attr(const perf_event_attr& attr, std::span<const std::uint64_t> ids);
  /// Writes an EVENT_UPDATE with the event's name in perf and stackfold.
  void write_event_name(std::uint64_t id, std::string_view name) {
    write_update(kUpdateName, id, name);
  }
  /// Writes an EVENT_UPDATE with the unit of an event whose sample period is its weight: "ns",
  /// "bytes" or "allocations".
  void write_event_unit(std::uint64_t id, std::string_view unit) {
    write_update(kUpdateUnit, id, unit);
  }
  /// Writes a HEADER_FEATURE record; `feature` is one of Feature.
  void write_feature(std::uint64_t feature, std::string_view data);
  void write_symbol(const SymbolRecord& symbol);
  void write_location(std::uint32_t pid, std::uint64_t address,
                      std::span<const std::uint64_t> symbol_ids);
  /// Writes a LOST_SAMPLES record with a counter's total loss, as perf does at the end.  `attr`
  /// defines the trailer of every record that is not a sample; `id` is one of its event's ids.
  void write_lost_samples(const perf_event_attr& attr, std::uint64_t id, std::uint64_t lost);
  /// Writes a FINISHED_ROUND: all records older than the newest one of the last round have been
  /// written, and more will follow.
  void write_finished_round();
  /// Writes a FINISHED_ROUND that promises: all records after it are in order of time.
  void write_order();
  /// Writes the last record of a complete stream: a FINISHED_ROUND that nothing follows.
  void write_end();
  /// Writes a record unchanged.
  void write(Bytes record);
  void flush() { out_.flush(); }

 private:
  void write_update(std::uint64_t kind, std::uint64_t id, std::string_view text);

  Output& out_;
  RecordBuilder builder_;
};

}  // namespace pe::stream

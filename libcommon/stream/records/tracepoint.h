// Reads the fields of tracepoints.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/byte_reader.h"
#include "stream/records/record.h"

namespace pe::stream {

/// The place of a field in a tracepoint's data (Sample::raw), in bytes.
struct TracepointField {
  std::size_t offset = 0, size = 0;
  std::string name = {};
  bool is_signed = false;

  /// Is it an integer of a size that value_of() reads, and no array?
  [[nodiscard]] bool is_number() const noexcept {
    return size == 1 || size == 2 || size == 4 || size == 8;
  }
};

/// Returns the number in `size` bytes (TracepointField::is_number()) at `offset`; nullopt if `data`
/// ends before.
std::optional<std::int64_t> number_at(Bytes data, std::uint64_t offset, std::size_t size,
                                      bool is_signed);
/// Returns the unit of a field, by its name: "bytes", "pages", "ns" or "units".
std::string unit_of_field(std::string_view field);

/// Parses the text of a "format" file.  Malformed lines are left out.
std::vector<TracepointField> parse_tracepoint_fields(std::string_view format);
/// Finds the field in the text of the tracepoint's "format" file; nullopt if there is no such
/// field.
std::optional<TracepointField> parse_tracepoint_field(std::string_view format,
                                                      std::string_view field);

// Reads what perf record states about tracepoints in a TRACING_DATA record, so that their fields
// can be read on another machine.
//
// Source: trace-cmd.dat.v6(5), the initial format up to the event formats.

/// A tracepoint of the recorded machine.  Views into the record.
struct DescribedTracepoint {
  std::string_view group;
  std::string_view name;
  std::uint64_t id = 0;     ///< perf_event_attr::config
  std::string_view format;  ///< as tracefs has it (parse_tracepoint_fields())
};

/// Calls `use` for each tracepoint that the record describes.  Returns false at the first part that
/// is malformed, or of the other byte order.
bool for_each_described_tracepoint(const Record& record,
                                   const std::function<void(const DescribedTracepoint&)>& use);

}  // namespace pe::stream

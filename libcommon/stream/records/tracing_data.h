// Reads what perf record states about tracepoints in a TRACING_DATA record, so that their fields
// can be read on another machine.
//
// Source: trace-cmd.dat.v6(5), the initial format up to the event formats.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

#include "stream/records/record.h"

namespace pe::stream {

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

// The events of a stream, and the layout of their samples.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "stream/records/record.h"
#include "stream/records/tracepoint.h"

namespace pe::stream {

/// One event, from a HEADER_ATTR record and the EVENT_UPDATE records after it.
struct Event {
  perf_event_attr attr{};
  std::vector<std::uint64_t> ids;
  std::string name;  ///< from the stream, or made from the attr; never empty
  /// The unit of a sample's period, if the stream contains it: "ns", "bytes", "allocations"; perf
  /// writes "msec".
  std::string unit;
  std::vector<TracepointField> fields = {};  ///< of a tracepoint, if the stream describes them
  /// The field that a sample counts, by EventTable::weigh_by().
  std::optional<TracepointField> weight = {};
};

/// The names of the two events that mark the calls of a function, without the function.
inline constexpr std::string_view kSpanEntry = "span:", kSpanReturn = "span-return:";

/// The meaning of a sample of such an event.
struct SpanEvent {
  std::string_view function;
  bool is_return = false;
};
/// Returns nullopt if the event is not about calls.
std::optional<SpanEvent> span_event(std::string_view event_name) noexcept;

/// Returns "main" for "/usr/bin/prog:main", and a name without a path unchanged.
std::string_view name_without_path(std::string_view function) noexcept;

/// All events of a stream; the id in a record identifies its event.
class EventTable {
 public:
  /// Applies a HEADER_ATTR record; false if it is malformed.
  bool add(const Record& attr_record);
  /// The next HEADER_ATTR records are those of a later recorder, which may have had the same
  /// events.
  void begin_again() noexcept { again_ = 0; }
  /// Applies an EVENT_UPDATE record; false if it is malformed or names no known event.
  bool update(const Record& update_record);
  /// Applies a TRACING_DATA record, which names tracepoints and has their fields; false if it is
  /// malformed.
  bool describe(const Record& tracing_data);

  /// From now on samples of tracepoints that have this field count its value, in its unit.
  void weigh_by(std::string field);

  /// Returns the event of the record; null if there are no events, or its id is unknown.
  [[nodiscard]] const Event* find(const Record& record) const;

  [[nodiscard]] const std::vector<Event>& all() const noexcept { return events_; }

 private:
  std::vector<Event> events_;
  std::unordered_map<std::uint64_t, std::size_t> index_by_id_;
  std::string weight_;                ///< a field; empty: none
  std::size_t last_ = 0;              ///< the event of the last HEADER_ATTR
  std::optional<std::size_t> again_;  ///< after begin_again(): the event that comes next
};

/// Reads an attr of any version (PERF_ATTR_SIZE_VER0 and later).  Zeros fill up a shorter version;
/// unknown fields of a longer one are skipped.
std::optional<perf_event_attr> take_attr(ByteReader& reader);

/// Returns perf's name of the event: "cycles", "cpu-clock"; "type 2 config 0x133" if none is known.
std::string name_of(const perf_event_attr& attr);

inline bool is_software(const perf_event_attr& attr) { return attr.type == PERF_TYPE_SOFTWARE; }
/// Is the event a clock, whose period is in nanoseconds?
inline bool is_clock(const perf_event_attr& attr) {
  return is_software(attr) &&
         (attr.config == PERF_COUNT_SW_CPU_CLOCK || attr.config == PERF_COUNT_SW_TASK_CLOCK);
}
inline bool is_tracepoint(const perf_event_attr& attr) { return attr.type == PERF_TYPE_TRACEPOINT; }

/// Sets type and config for "cycles", "cpu-clock", "page-faults", "L1-dcache-load-misses" …; false
/// if `name` is unknown.
bool set_event(perf_event_attr& attr, const std::string& name);
/// Returns the names that set_event() knows.
std::vector<std::string> known_event_names();

}  // namespace pe::stream

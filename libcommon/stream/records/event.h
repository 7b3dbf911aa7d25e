// The events of a stream: what was counted, and how their samples are laid out.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "stream/records/record.h"

namespace pe::stream {

/// One event, from a HEADER_ATTR record and the EVENT_UPDATE records after it.
struct Event {
  perf_event_attr attr{};
  std::vector<std::uint64_t> ids;
  std::string name;  ///< from the stream, or made from the attr; never empty
  /// What a sample's period is in, if the stream says: "ns", "bytes", "allocations"; perf: "msec".
  std::string unit;
};

/// All events of a stream, found by the id that its records carry.
class EventTable {
 public:
  /// Takes in a HEADER_ATTR record; false if it is malformed.
  bool add(const Record& attr_record);
  /// Takes in an EVENT_UPDATE record; false if it is malformed or names no known event.
  bool update(const Record& update_record);

  /// The event that made the record; null if none is known or the id is not.
  [[nodiscard]] const Event* find(const Record& record) const;

  [[nodiscard]] const std::vector<Event>& all() const noexcept { return events_; }

 private:
  std::vector<Event> events_;
  std::unordered_map<std::uint64_t, std::size_t> index_by_id_;
};

/// Reads what fits of an attr of any version: short ones are filled with zeros
/// (PERF_ATTR_SIZE_VER0 and later), what is longer than we know is skipped.
std::optional<perf_event_attr> take_attr(ByteReader& reader);

/// As perf names it: "cycles", "cpu-clock", or "type 2 config 0x133" where no name is known.
std::string name_of(const perf_event_attr& attr);

inline bool is_software(const perf_event_attr& attr) { return attr.type == PERF_TYPE_SOFTWARE; }
inline bool is_tracepoint(const perf_event_attr& attr) { return attr.type == PERF_TYPE_TRACEPOINT; }

/// Fills type and config for "cycles", "cpu-clock", "page-faults" …; false if the name is none.
bool set_event(perf_event_attr& attr, const std::string& name);

}  // namespace pe::stream

// SPDX-License-Identifier: MIT
#include "recording/probes/marks.h"

#include <string_view>

#include "recording/counters/attributes.h"
#include "stream/records/event.h"
#include "stream/user_copy.h"

namespace pe::recording {

void add_marks(const Request& request, std::vector<OpenedEvent>& events,
               std::vector<std::string>& notes) {
  if (request.spans.empty())
    return;
  for (OpenedEvent& event : events) {
    event.attr.sample_type |= PERF_SAMPLE_REGS_USER;
    event.attr.sample_regs_user |= stream::stack_pointer_mask();
  }
  for (const SpanProbes& span : request.spans) {
    const auto add = [&](std::string_view name, const Probe& probe) {
      if (probe.offsets.empty())  // no call of the function returns
        return;
      events.push_back({.attr = make_mark_attr(events.front().attr, probe),
                        .name = std::string(name) + span.function,
                        .ids = {},
                        .probed_offsets = probe.offsets,
                        .probed_file = probe.file,
                        .is_mark = true});
    };
    // Counters start in this order, and stop in the reverse one: each recorded entry has its exit.
    add(stream::kSpanReturn, span.exits);
    add(stream::kSpanEntry, span.entry);
    if (!span.exits.note.empty())
      notes.push_back(span.exits.note);
  }
}

std::vector<std::uint64_t> mark_ids(std::span<const OpenedEvent> events) {
  std::vector<std::uint64_t> ids;
  for (const OpenedEvent& event : events)
    if (event.is_mark)
      ids.insert(ids.end(), event.ids.begin(), event.ids.end());
  return ids;
}

void write_mark_events(stream::StreamWriter& writer, std::span<const OpenedEvent> events) {
  for (const OpenedEvent& event : events)
    if (event.is_mark && !event.ids.empty()) {
      writer.write_attr(stream::with_stack_pointer(event.attr), event.ids);
      writer.write_event_name(event.ids.front(), event.name);
    }
}

}  // namespace pe::recording

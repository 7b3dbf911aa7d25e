// The events of this machine's PMUs, as sysfs describes them:
//
//     DEVICES/PMU/type            perf_event_attr::type
//     DEVICES/PMU/format/TERM     the bits of a term: "config:0-7"
//     DEVICES/PMU/events/EVENT    terms of a named event: "event=0x3c,umask=0x1"
//
// The PMUs uprobe and kprobe open probes: config1 points to a path or a function, config2 is an
// offset, and the format has the bits "retprobe" and "ref_ctr_offset" (perf_event_open(2)).
//
// Source: Documentation/ABI/testing/sysfs-bus-event_source-devices-events and -format.
// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "recording/counters/event_name.h"
#include "recording/probes/probe.h"

namespace pe::recording {

class EventSources {
 public:
  explicit EventSources(std::string devices = "/sys/bus/event_source/devices")
      : devices_(std::move(devices)) {}

  /// Sets type, config and the modifiers' bits of an event, except those of tracepoints and probes.
  /// Throws UsageError if there is no such event, PMU or term; the message names similar ones.
  void set_event(perf_event_attr& attr, const EventName& event) const;
  /// Does the same for a probe.  The attr refers to the text of `probe`, which must outlive it.
  /// Throws Error if the kernel has no such probes.
  void set_probe(perf_event_attr& attr, const Probe& probe) const;

  /// Returns the names of all events but tracepoints and probes.
  [[nodiscard]] std::vector<std::string> event_names() const;

 private:
  void set_pmu_event(perf_event_attr& attr, const EventName& event) const;
  void set_term(perf_event_attr& attr, const EventName& event, const EventTerm& term) const;
  bool set_named_event(perf_event_attr& attr, const std::string& name) const;
  [[nodiscard]] std::string read(const std::string& path) const;
  [[nodiscard]] std::vector<std::string> names_in(const std::string& folder) const;
  [[nodiscard]] std::vector<std::string> events_of(const std::string& pmu) const;

  std::string devices_;
};

/// Returns up to three of the names that differ from `name` in few letters, the most similar first.
std::vector<std::string> similar_names(std::string_view name, std::vector<std::string> names);

}  // namespace pe::recording

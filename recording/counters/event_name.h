// Parses events as perf writes them (perf-list(1), EVENT MODIFIERS and PARAMETERIZED EVENTS):
//
//     cycles  cycles:u            a name, with modifiers
//     r1a8  r1a8:k                a raw event of the CPU, in hexadecimal
//     sched:sched_switch          a tracepoint
//     cpu/event=0x3c,umask=1/u    terms of a PMU that sysfs describes
//     uprobe:/bin/sh:main         a probe (recording/probes/probe_name.h)
//
// It also parses the descriptions of such terms in sysfs: "config:0-7,32-35", the bits of a term
// (Documentation/ABI/testing/sysfs-bus-event_source-devices-format).  Reads no file.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "recording/probes/weight.h"
#include "stream/records/event.h"

namespace pe::recording {

/// "umask=0x1", or "inv" without a value.
struct EventTerm {
  std::string name;
  std::optional<std::uint64_t> value = {};
};

/// The letters after an event: "u", "k", "h" and up to three "p".
struct EventModifiers {
  bool user = false, kernel = false, hypervisor = false;
  unsigned precise = 0;  ///< perf_event_attr::precise_ip

  /// Without u, k and h, all three are counted.
  [[nodiscard]] bool chooses_privilege() const noexcept { return user || kernel || hypervisor; }
};

struct EventName {
  enum class Kind : std::uint8_t { kNamed, kRaw, kPmu, kTracepoint, kProbe };
  Kind kind = Kind::kNamed;
  std::string name;       ///< without modifiers; of kPmu: the PMU; of kProbe: the whole text
  std::uint64_t raw = 0;  ///< of kRaw: perf_event_attr::config
  std::vector<EventTerm> terms = {};  ///< of kPmu
  EventModifiers modifiers = {};
};

/// Splits a list of events at its commas, but not at those between slashes, nor at those in the
/// names of functions.
std::vector<std::string> split_events(std::string_view list);

/// Throws UsageError "--event: 'cycles:x': …".  The event need not exist.
EventName parse_event(const std::string& text);

/// Parses "event=0x3c,umask=0x1,inv"; nullopt if that is malformed, or a value is missing ("?").
std::optional<std::vector<EventTerm>> parse_terms(std::string_view text);

/// The place of a term's value in a perf_event_attr.
class TermBits {
 public:
  /// Parses "config:0-7,32-35", "config1:0-63" or "config:21"; nullopt if that is malformed.
  static std::optional<TermBits> parse(std::string_view text);
  /// Sets the term's bits to `value`, lowest bit first.  Returns false, and changes nothing, if the
  /// term has fewer bits than the value.
  [[nodiscard]] bool set(perf_event_attr& attr, std::uint64_t value) const;
  /// Returns the number of bits, 1 to 64.
  [[nodiscard]] unsigned count() const noexcept;

 private:
  struct Range {
    unsigned first, last;
  };
  unsigned word_ = 0;  ///< 0: config, 1: config1, 2: config2
  std::vector<Range> ranges_;
};

/// Returns a config word of the attr: 0, 1 or 2.
std::uint64_t get_config(const perf_event_attr& attr, unsigned word);
void set_config(perf_event_attr& attr, unsigned word, std::uint64_t value);
/// Returns the number of "config", "config1" or "config2"; nullopt for any other name.
std::optional<unsigned> config_word(std::string_view name);

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

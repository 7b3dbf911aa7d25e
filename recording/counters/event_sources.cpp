// SPDX-License-Identifier: MIT
#include "recording/counters/event_sources.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include "base/error.h"
#include "base/io/input.h"
#include "base/parse_number.h"
#include "base/text.h"
#include "stream/records/event.h"

namespace pe::recording {
namespace {

/// Returns the number of letters to insert, remove or replace.
std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j < row.size(); ++j)
    row[j] = j;
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t diagonal = std::exchange(row[0], i + 1);
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t replaced = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, row[j] + 1, diagonal + 1});
    }
  }
  return row.back();
}

/// Returns the end of a message about an unknown name: "; did you mean cycles?".
std::string advice(std::string_view name, std::vector<std::string> names) {
  const auto similar = similar_names(name, std::move(names));
  return similar.empty() ? "; perf list shows all"
                         : fmt::format("; did you mean {}?", fmt::join(similar, " or "));
}

/// The files beside an event's own that describe its figures.
bool is_of_figures(std::string_view file) {
  return file.ends_with(".scale") || file.ends_with(".unit") || file.ends_with(".snapshot") ||
         file.ends_with(".per-pkg");
}

void set_modifiers(perf_event_attr& attr, const EventModifiers& modifiers) {
  attr.precise_ip = modifiers.precise & 3U;
  if (!modifiers.chooses_privilege())
    return;
  attr.exclude_user = modifiers.user ? 0 : 1;
  attr.exclude_kernel = modifiers.kernel ? 0 : 1;
  attr.exclude_hv = modifiers.hypervisor ? 0 : 1;
}

}  // namespace

std::vector<std::string> similar_names(std::string_view name, std::vector<std::string> names) {
  constexpr std::size_t kMost = 3, kLongest = 64;
  if (name.size() > kLongest)
    return {};
  const std::size_t few = std::max<std::size_t>(1, (name.size() + 1) / 3);
  std::vector<std::pair<std::size_t, std::string>> found;
  for (std::string& other : names)
    if (other.size() > name.size() + few || name.size() > other.size() + few)
      continue;
    else if (const std::size_t letters = distance(name, other); letters <= few)
      found.emplace_back(letters, std::move(other));
  std::sort(found.begin(), found.end());
  found.resize(std::min(found.size(), kMost));
  std::vector<std::string> similar;
  similar.reserve(found.size());
  for (auto& [letters, other] : found)
    similar.push_back(std::move(other));
  return similar;
}

void EventSources::set_event(perf_event_attr& attr, const EventName& event) const {
  switch (event.kind) {
    case EventName::Kind::kPmu:
      set_pmu_event(attr, event);
      break;
    case EventName::Kind::kRaw:
      attr.type = PERF_TYPE_RAW;
      attr.config = event.raw;
      break;
    case EventName::Kind::kNamed:
      if (!stream::set_event(attr, event.name) && !set_named_event(attr, event.name))
        throw UsageError(fmt::format("--event: no such event: {}{}", in_quotes(event.name),
                                     advice(event.name, event_names())));
      break;
    case EventName::Kind::kTracepoint:
    case EventName::Kind::kProbe:
      break;
  }
  set_modifiers(attr, event.modifiers);
}

void EventSources::set_probe(perf_event_attr& attr, const Probe& probe) const {
  const std::string pmu = probe.is_of_kernel() ? "kprobe" : "uprobe";
  const auto type = parse_number<std::uint32_t>(read(pmu + "/type"));
  if (!type)
    throw Error(fmt::format(
        "--event: {}: this kernel has no {} ({}/{} is missing; {})", word_of(probe.kind), pmu + "s",
        devices_, pmu, probe.is_of_kernel() ? "CONFIG_KPROBE_EVENTS" : "CONFIG_UPROBE_EVENTS"));
  attr.type = *type;
  attr.config = 0;
  const auto set = [&](const char* term, std::uint64_t value) {
    const auto bits = TermBits::parse(read(fmt::format("{}/format/{}", pmu, term)));
    if (value != 0 && (!bits || !bits->set(attr, value)))
      throw Error(fmt::format("--event: {}: this kernel cannot open it: {}/{}/format/{} {}",
                              word_of(probe.kind), devices_, pmu, term,
                              bits ? "has too few bits" : "is missing"));
  };
  set("retprobe", probe.kind == ProbeKind::kKretprobe ? 1 : 0);
  set("ref_ctr_offset", probe.semaphore_offset);
  // uprobe_path or kprobe_func, and probe_offset
  attr.config1 = reinterpret_cast<std::uintptr_t>(probe.target.c_str());
  attr.config2 = probe.offsets.front();
}

void EventSources::set_pmu_event(perf_event_attr& attr, const EventName& event) const {
  const auto type = parse_number<std::uint32_t>(read(event.name + "/type"));
  if (!type) {
    const auto pmus = names_in("");
    throw UsageError(fmt::format("--event: no such PMU: {}; this machine has {}",
                                 in_quotes(event.name), fmt::join(pmus, ", ")));
  }
  attr.type = *type;
  attr.config = attr.config1 = attr.config2 = 0;
  for (const EventTerm& term : event.terms)
    set_term(attr, event, term);
}

/// Sets the bits of a term, or those of all terms of a named event.
void EventSources::set_term(perf_event_attr& attr, const EventName& event,
                            const EventTerm& term) const {
  const auto refuse = [&](const std::string& problem) {
    throw UsageError(fmt::format("--event: {}/{}/: {}", event.name, term.name, problem));
  };
  const auto set = [&](const EventTerm& each) {
    const std::uint64_t value = each.value.value_or(1);
    if (const auto word = config_word(each.name)) {
      set_config(attr, *word, value);
      return;
    }
    const auto bits = TermBits::parse(read(fmt::format("{}/format/{}", event.name, each.name)));
    if (!bits)
      refuse(fmt::format("the PMU has no term or event {}{}", in_quotes(each.name),
                         advice(each.name, events_of(event.name))));
    else if (!bits->set(attr, value))
      refuse(fmt::format("{:#x} is too large: the term has {} bits", value, bits->count()));
  };
  const std::string described = term.value || is_of_figures(term.name)
                                    ? ""
                                    : read(fmt::format("{}/events/{}", event.name, term.name));
  if (described.empty())
    return set(term);
  const auto terms = parse_terms(described);
  if (!terms)
    refuse(fmt::format("it needs values: {}", pe::printable(described)));
  for (const EventTerm& each : *terms)
    set(each);
}

/// Sets an event of any PMU, such as "mem-loads"; false if no PMU has it.
bool EventSources::set_named_event(perf_event_attr& attr, const std::string& name) const {
  for (const std::string& pmu : names_in(""))
    if (!is_of_figures(name) && !read(fmt::format("{}/events/{}", pmu, name)).empty()) {
      set_pmu_event(attr, {.kind = EventName::Kind::kPmu, .name = pmu, .terms = {{name}}});
      return true;
    }
  return false;
}

/// Returns the text of a file below the devices, without its newline; empty if it cannot be read.
std::string EventSources::read(const std::string& path) const {
  constexpr std::size_t kMaxBytes = 4096;  // sysfs writes no more than a page
  std::string text = read_small_file(fmt::format("{}/{}", devices_, path), kMaxBytes).value_or("");
  while (text.ends_with('\n'))
    text.pop_back();
  return text;
}

/// Returns the sorted names of the files and folders in a folder below the devices.
std::vector<std::string> EventSources::names_in(const std::string& folder) const {
  std::vector<std::string> names;
  std::error_code error;
  std::filesystem::directory_iterator entries(fmt::format("{}/{}", devices_, folder), error);
  for (; !error && entries != std::filesystem::directory_iterator(); entries.increment(error))
    names.push_back(entries->path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

std::vector<std::string> EventSources::events_of(const std::string& pmu) const {
  std::vector<std::string> names = names_in(pmu + "/events");
  std::erase_if(names, is_of_figures);
  return names;
}

std::vector<std::string> EventSources::event_names() const {
  std::vector<std::string> names = stream::known_event_names();
  for (const std::string& pmu : names_in(""))
    for (std::string& event : events_of(pmu))
      names.push_back(std::move(event));
  return names;
}

}  // namespace pe::recording

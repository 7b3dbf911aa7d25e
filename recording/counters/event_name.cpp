// SPDX-License-Identifier: MIT
#include "recording/counters/event_name.h"

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
#include "recording/counters/tracefs.h"
#include "recording/probes/probe_name.h"
#include "stream/records/event.h"

namespace pe::recording {
namespace {

[[noreturn]] void refuse(const std::string& text, std::string_view problem) {
  throw UsageError(fmt::format("--event: {}: {}", in_quotes(text), problem));
}

bool is_word(std::string_view text) {
  return !text.empty() && !text.starts_with('.') &&
         std::all_of(text.begin(), text.end(), [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                  c == '_' || c == '-' || c == '.';
         });
}

/// Parses "12" or "0x1f".
std::optional<std::uint64_t> parse_value(std::string_view text) {
  constexpr int kHex = 16;
  if (text.starts_with("0x"))
    return parse_number<std::uint64_t>(text.substr(2), kHex);
  return parse_number<std::uint64_t>(text);
}

/// Parses "u", "kpp" and so on; nullopt if there is another letter, or a fourth "p".
std::optional<EventModifiers> parse_modifiers(std::string_view letters) {
  constexpr unsigned kMostPrecise = 3;
  EventModifiers modifiers;
  for (const char letter : letters) {
    if (letter == 'u')
      modifiers.user = true;
    else if (letter == 'k')
      modifiers.kernel = true;
    else if (letter == 'h')
      modifiers.hypervisor = true;
    else if (letter == 'p' && modifiers.precise < kMostPrecise)
      ++modifiers.precise;
    else
      return std::nullopt;
  }
  return letters.empty() ? std::nullopt : std::optional(modifiers);
}

EventModifiers read_modifiers(const std::string& text, std::string_view letters) {
  const auto modifiers = parse_modifiers(letters);
  if (!modifiers)
    refuse(text, fmt::format("no such modifiers: {}: use u, k, h, and p up to three times",
                             in_quotes(letters)));
  return *modifiers;
}

/// Parses "PMU/TERMS/", "PMU/TERMS/u" or "PMU/TERMS/:u".
EventName parse_pmu_event(const std::string& text) {
  const auto first = text.find('/'), last = text.rfind('/');
  EventName event{.kind = EventName::Kind::kPmu, .name = text.substr(0, first)};
  if (last == first || !is_word(event.name))
    refuse(text, "write PMU/TERM=VALUE,.../");
  auto terms = parse_terms(std::string_view(text).substr(first + 1, last - first - 1));
  if (!terms)
    refuse(text, "its terms must look like event=0x3c,umask=0x1");
  event.terms = std::move(*terms);
  std::string_view letters = std::string_view(text).substr(last + 1);
  if (letters.starts_with(':'))
    letters.remove_prefix(1);
  else if (letters.empty())
    return event;
  event.modifiers = read_modifiers(text, letters);
  return event;
}

/// Returns the config of "r1a8"; nullopt if that is not a raw event.
std::optional<std::uint64_t> parse_raw(std::string_view name) {
  constexpr int kHex = 16;
  if (!name.starts_with('r'))
    return std::nullopt;
  return parse_number<std::uint64_t>(name.substr(1), kHex);
}

bool is_known(const std::string& name) {
  perf_event_attr attr{};
  return stream::set_event(attr, name);
}

/// Returns where the modifiers start, after their colon; npos if there are none.  "a:u" is an event
/// with a modifier, "a:sched_switch" a tracepoint.
std::size_t find_modifiers(const std::string& text) {
  const auto first = text.find(':'), last = text.rfind(':');
  if (first == text.npos)
    return text.npos;
  const std::string before = text.substr(0, last);
  const bool is_tracepoint = first == last && is_tracepoint_name(text) && !is_known(before) &&
                             !parse_raw(before) &&
                             !parse_modifiers(std::string_view(text).substr(last + 1));
  return is_tracepoint ? text.npos : last + 1;
}

/// Returns the length up to the first comma that is not between slashes.
std::size_t length_of_event(std::string_view list) {
  bool is_in_terms = false;
  std::size_t at = 0;
  for (; at < list.size() && (list[at] != ',' || is_in_terms); ++at)
    is_in_terms = is_in_terms != (list[at] == '/');
  return at;
}

}  // namespace

std::vector<std::string> split_events(std::string_view list) {
  std::vector<std::string> events;
  for (;;) {
    const std::size_t length = is_probe(list) ? length_of_probe(list) : length_of_event(list);
    events.emplace_back(list.substr(0, length));
    if (length == list.size())
      return events;
    list.remove_prefix(length + 1);
  }
}

EventName parse_event(const std::string& text) {
  if (text.empty())
    throw UsageError("--event: an event has no name");
  if (is_probe(text)) {
    (void)parse_probe(text);
    return {.kind = EventName::Kind::kProbe, .name = text};
  }
  if (text.find('/') != text.npos)
    return parse_pmu_event(text);
  EventName event;
  const std::size_t letters = find_modifiers(text);
  event.name = text.substr(0, letters == text.npos ? text.npos : letters - 1);
  if (letters != text.npos)
    event.modifiers = read_modifiers(text, std::string_view(text).substr(letters));
  if (is_tracepoint_name(event.name)) {
    event.kind = EventName::Kind::kTracepoint;
  } else if (const auto raw = parse_raw(event.name)) {
    event.kind = EventName::Kind::kRaw;
    event.raw = *raw;
  } else if (!is_word(event.name)) {
    refuse(text, "not the name of an event (see perf list)");
  }
  return event;
}

std::optional<std::vector<EventTerm>> parse_terms(std::string_view text) {
  std::vector<EventTerm> terms;
  for (;;) {
    const std::string_view term = text.substr(0, text.find(','));
    const auto equals = term.find('=');
    EventTerm& added = terms.emplace_back(EventTerm{.name = std::string(term.substr(0, equals))});
    if (!is_word(added.name))
      return std::nullopt;
    if (equals != term.npos) {
      added.value = parse_value(term.substr(equals + 1));
      if (!added.value)
        return std::nullopt;
    }
    if (term.size() == text.size())
      return terms;
    text.remove_prefix(term.size() + 1);
  }
}

std::optional<TermBits> TermBits::parse(std::string_view text) {
  constexpr unsigned kWordBits = 64;
  const auto colon = text.find(':');
  const auto word = config_word(text.substr(0, colon));
  if (colon == text.npos || !word)
    return std::nullopt;
  TermBits bits;
  bits.word_ = *word;
  text.remove_prefix(colon + 1);
  for (;;) {
    const std::string_view part = text.substr(0, text.find(','));
    const auto dash = part.find('-');
    const auto first = parse_number<unsigned>(part.substr(0, dash));
    const auto last = dash == part.npos ? first : parse_number<unsigned>(part.substr(dash + 1));
    if (!first || !last || *first > *last || *last >= kWordBits)
      return std::nullopt;
    bits.ranges_.push_back({*first, *last});
    if (bits.count() > kWordBits)
      return std::nullopt;
    if (part.size() == text.size())
      return bits;
    text.remove_prefix(part.size() + 1);
  }
}

unsigned TermBits::count() const noexcept {
  unsigned count = 0;
  for (const Range& range : ranges_)
    count += range.last - range.first + 1;
  return count;
}

bool TermBits::set(perf_event_attr& attr, std::uint64_t value) const {
  constexpr unsigned kWordBits = 64;
  if (count() < kWordBits && value >> count() != 0)
    return false;
  std::uint64_t word = get_config(attr, word_);
  for (const Range& range : ranges_)
    for (unsigned bit = range.first; bit <= range.last; ++bit) {
      word = (word & ~(std::uint64_t{1} << bit)) | ((value & 1) << bit);
      value >>= 1U;
    }
  set_config(attr, word_, word);
  return true;
}

std::uint64_t get_config(const perf_event_attr& attr, unsigned word) {
  return word == 0 ? attr.config : word == 1 ? attr.config1 : attr.config2;
}

void set_config(perf_event_attr& attr, unsigned word, std::uint64_t value) {
  if (word == 0)
    attr.config = value;
  else if (word == 1)
    attr.config1 = value;
  else
    attr.config2 = value;
}

std::optional<unsigned> config_word(std::string_view name) {
  if (name == "config")
    return 0;
  if (name == "config1")
    return 1;
  return name == "config2" ? std::optional(2U) : std::nullopt;
}

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

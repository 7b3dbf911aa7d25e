// SPDX-License-Identifier: MIT
#include "recording/probes/list.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/text.h"
#include "recording/counters/event_name.h"
#include "recording/counters/tracefs.h"
#include "recording/probes/probe_name.h"
#include "recording/probes/resolve.h"
#include "recording/probes/weight.h"
#include "recording/target_options.h"
#include "stream/records/tracepoint.h"

namespace pe::recorder {
namespace {

struct ReadyMade {
  std::string_view name, event;
  std::string_view field = {}, filter = {};
};

// A received length with MSG_PEEK (2) will be received again.
constexpr std::array kReadyMade{
    ReadyMade{"io", "block:block_rq_issue", "bytes"},
    ReadyMade{"net", "sock:sock_send_length", "ret", "protocol == 6"},
    ReadyMade{"net", "sock:sock_recv_length", "ret", "protocol == 6 && !(flags & 2)"},
    ReadyMade{"faults", "page-faults"},
    ReadyMade{"writes", "syscalls:sys_exit_write", "ret"},
    ReadyMade{"writes", "syscalls:sys_exit_pwrite64", "ret"},
    ReadyMade{"writes", "syscalls:sys_exit_writev", "ret"},
    ReadyMade{"writes", "syscalls:sys_exit_pwritev", "ret"},
    ReadyMade{"writes", "syscalls:sys_exit_pwritev2", "ret"},
};

}  // namespace

std::vector<std::string> ready_made_names() {
  std::vector<std::string> names;
  for (const ReadyMade& each : kReadyMade)
    if (names.empty() || names.back() != each.name)
      names.emplace_back(each.name);
  return names;
}

bool add_ready_made(std::string_view name, recording::Request& request, WantedWeights& weights) {
  bool is_found = false;
  for (const ReadyMade& each : kReadyMade) {
    if (each.name != name)
      continue;
    is_found = true;
    const std::string event(each.event);
    request.events.push_back(event);
    request.shown_names[event] = each.name;
    request.each_pass.insert(event);
    if (!each.field.empty())
      weights[event] = {.field = std::string(each.field), .unit = "bytes"};
    if (!each.filter.empty())
      request.filters[event] = each.filter;
  }
  return is_found;
}

namespace {

std::vector<std::string> events_like(const std::string& pattern) {
  std::vector<std::string> names = recording::EventSources().event_names();
  for (auto& more : {ready_made_names(), recording::tracepoint_names()})
    names.insert(names.end(), more.begin(), more.end());
  const std::string wanted = is_pattern(pattern) ? pattern : "*" + pattern + "*";
  std::erase_if(names, [&](const std::string& name) { return !matches_pattern(wanted, name); });
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

}  // namespace

int list_events(const CommandLine& line, Io& io) {
  if (!line.command.empty())
    throw UsageError("--list takes no command");
  const std::string& pattern = *line.text("list");
  recording::Target target;
  if (line.has("pid")) {
    target = recording::read_target(line, "--pid");
    recording::tidy(target);
  }
  const auto names =
      recording::is_probe(pattern) ? probes_like(pattern, target) : events_like(pattern);
  for (const std::string& name : names)
    io.out.write(printable(name) + "\n");
  if (names.empty())
    throw Error(fmt::format("--list: nothing matches {}", in_quotes(pattern)));
  return kOk;
}

namespace {

using recording::Probe;
using recording::ProbeKind;
using recording::Weight;

std::string list_of(const std::vector<stream::TracepointField>& fields) {
  std::vector<std::string> names;
  for (const stream::TracepointField& field : fields)
    if (!field.name.starts_with("common_"))
      names.push_back(field.name);
  return fmt::format("{}", fmt::join(names, ", "));
}

Weight weight_of_tracepoint(const std::string& event, const std::string& name) {
  const auto fields = recording::tracepoint_fields(event);
  const auto field = std::ranges::find(fields, name, &stream::TracepointField::name);
  if (field == fields.end())
    throw Error(fmt::format("--weight: {} has no field {}; it has {}", event, in_quotes(name),
                            list_of(fields)));
  if (!field->is_number())
    throw Error(
        fmt::format("--weight: the field {} of {} is not a number", in_quotes(name), event));
  return {.kind = Weight::Kind::kField,
          .bytes = static_cast<unsigned>(field->size),
          .is_signed = field->is_signed,
          .offset = static_cast<std::int64_t>(field->offset)};
}

Weight weight_of_static_probe(const std::string& event, const Probe& probe,
                              const std::string& name) {
  const auto number = recording::argument_number(name);
  const auto weight =
      number ? recording::argument_of_static_probe(probe.arguments, *number) : std::nullopt;
  if (weight)
    return *weight;
  throw Error(fmt::format("--weight: {} has no readable value {}; its arguments are {}", event,
                          in_quotes(name),
                          probe.arguments.empty() ? "none" : in_quotes(probe.arguments)));
}

Weight weight_of_probe(const std::string& event, const Probe& probe, const std::string& name) {
  if (probe.is_of_kernel())
    throw Error(fmt::format("--weight: {}: the kernel's own functions have no weights", event));
  if (probe.kind == ProbeKind::kUsdt)
    return weight_of_static_probe(event, probe, name);
  if (probe.kind == ProbeKind::kUretprobe) {
    if (name != "retval")
      throw Error(fmt::format("--weight: {}: a return has only the value retval", event));
    return recording::returned_value();
  }
  const auto number = recording::argument_number(name);
  const auto weight = number ? recording::argument_of_function(*number) : std::nullopt;
  if (!weight)
    throw Error(
        fmt::format("--weight: {}: a call has the values arg0 to arg5{}", event,
                    name == "retval" ? "; for retval, record its returns (uretprobe:)" : ""));
  return *weight;
}

Weight find_weight(const recording::Request& request, const std::string& event,
                   const std::string& name) {
  if (const auto probe = request.probes.find(event); probe != request.probes.end())
    return weight_of_probe(event, probe->second, name);
  if (recording::parse_event(event).kind != recording::EventName::Kind::kTracepoint)
    throw Error(
        fmt::format("--weight: {} has no fields: only tracepoints and probes have them", event));
  return weight_of_tracepoint(event, name);
}

bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

/// Returns the words of a filter that are fields: not numbers, and not in quotes.
std::vector<std::string> words_of(std::string_view filter) {
  std::vector<std::string> words;
  char quote = 0;
  for (std::size_t at = 0; at < filter.size(); ++at) {
    const char c = filter[at];
    if (quote != 0 || c == '"' || c == '\'') {
      quote = quote == 0 ? c : (c == quote ? '\0' : quote);
      continue;
    }
    std::size_t end = at;
    while (end < filter.size() && is_letter(filter[end]))
      ++end;
    if (end == at)
      continue;
    if (c < '0' || c > '9')
      words.emplace_back(filter.substr(at, end - at));
    at = end - 1;
  }
  return words;
}

/// The kernel's message for a filter is only "invalid argument".
void check_filter(const std::string& event, const std::string& filter) {
  if (recording::is_probe(event) ||
      recording::parse_event(event).kind != recording::EventName::Kind::kTracepoint)
    throw Error(fmt::format("--filter: {} is not a tracepoint", event));
  const auto fields = recording::tracepoint_fields(event);
  // Fields of no tracepoint, which the kernel knows (Documentation/trace/events.rst).
  constexpr std::array<std::string_view, 6> kOthers{"cpu",  "CPU",  "comm",
                                                    "COMM", "CPUS", "stacktrace"};
  bool is_after_field = false;  // a string without quotes may follow a field
  for (const std::string& word : words_of(filter)) {
    const bool is_field =
        std::ranges::find(fields, word, &stream::TracepointField::name) != fields.end() ||
        std::find(kOthers.begin(), kOthers.end(), word) != kOthers.end();
    if (!is_field && !is_after_field)
      throw Error(fmt::format("--filter: {} has no field {}; it has {}", event, in_quotes(word),
                              list_of(fields)));
    is_after_field = is_field;
  }
}

}  // namespace

void resolve_fields(recording::Request& request, const WantedWeights& weights) {
  for (const std::string& event : request.events) {
    auto wanted = weights.find(event);
    if (wanted == weights.end())
      wanted = weights.find("");  // of all events
    if (wanted != weights.end()) {
      const auto& [field, unit] = wanted->second;
      request.weights[event] = {find_weight(request, event, field),
                                unit.empty() ? stream::unit_of_field(field) : unit};
    }
  }
  request.with_raw_data = std::any_of(
      request.weights.begin(), request.weights.end(),
      [](const auto& weight) { return weight.second.weight.kind == Weight::Kind::kField; });
  for (const auto& [event, filter] : request.filters)
    check_filter(event, filter);
}

}  // namespace pe::recorder

// SPDX-License-Identifier: MIT
#include "stackfold/formats/perf_script/sample_line.h"

#include <algorithm>
#include <cstddef>

#include "base/characters.h"
#include "base/parse_number.h"
#include "folded/folded_line.h"
#include "stackfold/formats/perf_script/frame.h"
#include "stackfold/options.h"

namespace pe::fold {
namespace {

std::size_t skip(std::string_view text, std::size_t at, bool (*is)(char)) {
  while (at < text.size() && is(text[at]))
    ++at;
  return at;
}

struct Numbers {
  std::string_view pid, tid;
  std::size_t end;  ///< position after the numbers
};

/// Returns the end of a number at `at`; `at` if there is none.  perf prints -1 for a process that
/// has ended before its sample was recorded.
std::size_t skip_id(std::string_view line, std::size_t at, bool is_perl) {
  if (!is_perl && line.substr(at).starts_with("-1"))
    return at + 2;
  return skip(line, at, is_digit);
}

/// Parses "12/34 " or "34 " at `at`.  A blank must follow.
std::optional<Numbers> numbers_at(std::string_view line, std::size_t at, bool is_perl) {
  const std::size_t first_end = skip_id(line, at, is_perl);
  if (first_end == at)
    return std::nullopt;
  const std::size_t second = skip(line, first_end, [](char c) { return c == '/'; });
  const std::size_t end = second == first_end ? first_end : skip_id(line, second, is_perl);
  if (end == line.size() || !is_space(line[end]))
    return std::nullopt;
  const std::string_view one = line.substr(at, first_end - at);
  const std::string_view two = line.substr(second, end - second);
  return two.empty() ? Numbers{{}, one, end} : Numbers{one, two, end};
}

/// Does the text start with the field after the numbers: "[cpu]", or the time and a colon?
bool is_cpu_or_time(std::string_view rest) {
  rest.remove_prefix(skip(rest, 0, is_space));
  if (rest.starts_with('[')) {
    const std::size_t end = skip(rest, 1, is_digit);
    return end > 1 && rest.substr(end).starts_with(']');
  }
  const std::size_t point = skip(rest, 0, is_digit);
  if (point == 0 || !rest.substr(point).starts_with('.'))
    return false;  // "10:00:00" is no time of perf
  const std::size_t end = skip(rest, point + 1, is_digit);
  return end > point + 1 && rest.substr(end).starts_with(':');
}

/// Splits a name from the first numbers after it that `accept` allows.  For the Perl script, the
/// name has at least two characters.
template <typename Accept>
std::optional<PerfHeader> split_name(std::string_view line, bool is_perl, Accept&& accept) {
  const std::size_t shortest = is_perl ? 2 : 1;
  for (std::size_t i = shortest; i < line.size(); ++i) {
    if (!is_space(line[i]))
      continue;
    const std::size_t at = skip(line, i, is_space);
    const auto numbers = numbers_at(line, at, is_perl);
    if (numbers && accept(line.substr(numbers->end)))
      return PerfHeader{.comm = line.substr(0, i),
                        .pid = numbers->pid,
                        .tid = numbers->tid,
                        .event = {},
                        .rest = line.substr(numbers->end)};
  }
  return std::nullopt;
}

struct FoundEvent {
  PerfEventField field;
  std::size_t end;  ///< position after the event in the text
};

std::optional<FoundEvent> event_at(std::string_view text, std::size_t colon, bool ends_line) {
  // ": [period] name:"
  std::size_t at = skip(text, colon + 1, is_space);
  const std::size_t digits_end = skip(text, at, is_digit);
  PerfEventField field;
  if (digits_end > at && digits_end < text.size() && is_space(text[digits_end])) {
    field.period_digits = text.substr(at, digits_end - at);
    const auto period = parse_number<std::uint64_t>(field.period_digits);
    field.period = period.value_or(0);
    field.is_period_too_large = !period;
    at = skip(text, digits_end, is_space);
  } else if (at == colon + 1) {
    return std::nullopt;  // a blank must separate them
  }
  const std::size_t end = skip(text, at, [](char c) { return !is_space(c); });
  if (end < at + 2 || text[end - 1] != ':' ||
      (ends_line && skip(text, end, is_space) != text.size()))
    return std::nullopt;
  field.name = text.substr(at, end - 1 - at);
  return FoundEvent{field, end};
}

std::optional<FoundEvent> find_event(std::string_view text, bool ends_line) {
  for (std::size_t colon = text.find(':'); colon != kNone; colon = text.find(':', colon + 1))
    if (const auto event = event_at(text, colon, ends_line))
      return event;
  return std::nullopt;
}

}  // namespace

std::optional<PerfHeader> parse_perf_header(std::string_view line, bool is_perl) {
  if (line.empty() || is_space(line[0]))
    return std::nullopt;
  const auto anything = [](std::string_view) { return true; };
  std::optional<PerfHeader> header;
  if (!is_perl)
    header = split_name(line, is_perl, is_cpu_or_time);
  if (header)
    header->has_place_or_time = true;
  else  // `perf script -F` can omit the fields that distinguish these numbers from a name's
    header = split_name(line, is_perl, anything);
  if (!header)
    return std::nullopt;
  if (is_perl && header->tid == "0" &&
      !header->pid.empty()) {  // the Perl script treats "0" as missing
    header->tid = header->pid;
    header->pid = {};
  }
  if (const auto last = find_event(line, true)) {
    header->event = last->field;
  } else if (const auto event = is_perl ? std::nullopt : find_event(header->rest, false)) {
    header->event = event->field;
    header->after_event = header->rest.substr(event->end);
  }
  return header;
}

std::optional<std::uint64_t> header_time_us(const PerfHeader& header) {
  std::string_view rest = header.rest;
  while (!rest.empty()) {
    rest.remove_prefix(skip(rest, 0, is_space));
    const std::size_t end = skip(rest, 0, [](char c) { return !is_space(c); });
    std::string_view word = rest.substr(0, end);
    rest.remove_prefix(end);
    if (!word.ends_with(':') || word.find('.') == kNone)
      continue;
    word.remove_suffix(1);
    if (const auto time_us = stream::parse_seconds_us(word))
      return time_us;
  }
  return std::nullopt;
}

bool is_blank_line(std::string_view line) { return trimmed(line).empty(); }

bool is_other_record(std::string_view line) {
  return line.find(": PERF_RECORD_") != std::string_view::npos;
}

SampleLine parse_sample_line(std::string_view line, bool is_perl) {
  const auto begin = line.find_first_not_of(" \t");
  const bool is_indented = begin > 0;
  const bool may_have_frame = !is_perl && line.find(": ") != line.npos;
  if (begin == line.npos || (is_indented && !may_have_frame))
    return {};
  SampleLine parsed{parse_perf_header(line.substr(begin), is_perl), {}};
  if (parsed.header && may_have_frame)
    parsed.frame = parse_sole_frame(parsed.header->after_event);
  const bool is_certain =
      parsed.frame || (parsed.header && parsed.header->has_place_or_time && parsed.header->event);
  return is_indented && !is_certain ? SampleLine{} : parsed;
}

namespace perf_script {
namespace {

/// Counts lines by their kinds.
struct Census {
  std::size_t samples = 0;  ///< lines that start a sample, with all marks
  std::size_t whole = 0;    ///< such lines with a frame in them, or after them
  std::size_t plain = 0;    ///< lines with a name and a number, and a frame after them
  std::size_t frames = 0;
  std::size_t folded = 0;  ///< of `samples`: they also end in a count
  std::size_t others = 0;
};

enum class Last { kNothing, kSample, kPlain, kFrame, kRecord };

/// Does the line start a sample of `perf script -F comm,pid,ip,sym`, which prints no time?  A CPU,
/// the period and the event may follow.
bool is_plain(const PerfHeader& header) {
  std::string_view rest = trimmed(header.rest);
  if (rest.starts_with('['))
    rest = trimmed(rest.substr(std::min(rest.find(']'), rest.size() - 1) + 1));
  const auto after = std::find_if_not(rest.begin(), rest.end(), is_digit);
  rest = trimmed(rest.substr(static_cast<std::size_t>(after - rest.begin())));
  return rest.empty() || (rest.ends_with(':') && std::none_of(rest.begin(), rest.end(), is_space));
}

/// Does the line start with a hexadecimal pc?
bool may_be_frame(std::string_view line) {
  line = trimmed(line);
  const auto end = std::find_if(line.begin(), line.end(), is_space);
  return end != line.begin() && end != line.end() && std::all_of(line.begin(), end, is_hex);
}

/// Counts the line if it starts a sample with all marks; false if it does not.
bool count_sample(std::string_view line, const SampleLine& parsed, Census& census) {
  const auto& [header, frame] = parsed;
  if (!header || !header->has_place_or_time || !(header->event || frame || header_time_us(*header)))
    return false;
  ++census.samples;
  census.whole += frame ? 1 : 0;
  census.folded += folded::parse_folded_line(line) ? 1 : 0;
  return true;
}

/// Counts a line and returns its kind.
Last count(std::string_view line, Last last, Census& census) {
  const bool is_indented = is_blank(line[0]);
  if (is_other_record(line) || (last == Last::kRecord && is_indented))
    return Last::kRecord;
  if (last != Last::kNothing && may_be_frame(line) &&
      (is_indented || parse_perf_frame(line, false))) {
    ++census.frames;
    census.whole += last == Last::kSample ? 1 : 0;
    census.plain += last == Last::kPlain ? 1 : 0;
    return Last::kFrame;
  }
  const SampleLine parsed = parse_sample_line(line, false);
  if (count_sample(line, parsed, census))
    return Last::kSample;
  if ((last == Last::kSample || last == Last::kFrame) && is_source_line(line))
    return last;
  if (parsed.header && (parsed.header->event || is_plain(*parsed.header)))
    return Last::kPlain;
  ++census.others;
  return last;  // the sample may go on after an unknown line
}

}  // namespace

bool looks_like(std::string_view head) {
  Census census;
  Last last = Last::kNothing;
  while (!head.empty()) {
    const auto line = take_until(head, '\n').value_or(head);
    if (head.data() == line.data())
      head = {};
    if (line.starts_with('#'))
      continue;
    last = is_blank_line(line) ? Last::kNothing : count(line, last, census);
  }
  const std::size_t known = census.samples + census.plain + census.frames;
  if (census.whole > 0)
    return census.others <= known;
  constexpr std::size_t kMostOthers = 10;  // at most one line in 10 may be something else
  const bool has_stacks = census.plain > 0 && census.frames > 0;
  const bool has_samples = census.samples > census.folded;
  return (has_stacks || has_samples) && census.others <= known / kMostOthers;
}

}  // namespace perf_script

}  // namespace pe::fold

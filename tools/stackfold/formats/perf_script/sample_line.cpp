// SPDX-License-Identifier: MIT
#include "stackfold/formats/perf_script/sample_line.h"

#include <algorithm>
#include <cstddef>

#include "base/characters.h"
#include "base/take_until.h"
#include "folded/folded_line.h"
#include "stackfold/formats/perf_script/source_line.h"

namespace pe::fold {

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

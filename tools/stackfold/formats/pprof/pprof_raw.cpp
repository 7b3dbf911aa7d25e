// SPDX-License-Identifier: MIT
#include "stackfold/formats/pprof/pprof_raw.h"

#include <fmt/format.h>
#include <boost/unordered/unordered_flat_map.hpp>

#include <algorithm>
#include <charconv>
#include <optional>
#include <string>
#include <vector>

#include "base/characters.h"
#include "base/string_arena.h"
#include "base/text.h"
#include "stackfold/formats/pprof/sample_types.h"
#include "stackfold/formats/text.h"
#include "stackfold/frame_text.h"
#include "stream/records/sample.h"

namespace pe::fold::pprof_raw {
namespace {

/// Cuts off the next word with the blanks before it, and returns the word; empty at the end.
std::string_view take_word(std::string_view& text) {
  text = trim(text);
  const std::string_view word = text.substr(0, text.find_first_of(" \t"));
  text.remove_prefix(word.size());
  return word;
}

std::optional<std::int64_t> parse_value(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc{} && end == text.data() + text.size() ? std::optional(value)
                                                                  : std::nullopt;
}

std::optional<std::uint64_t> parse_hex(std::string_view text) {
  if (!text.starts_with("0x"))
    return std::nullopt;
  return parse_number<std::uint64_t>(text.substr(2), 16);
}

struct Location {
  std::uint64_t address = 0;
  std::uint64_t mapping_id = 0;
  std::vector<folded::FrameId> names;  ///< innermost first
};

struct Mapping {
  std::uint64_t start = 0, file_offset = 0;
  std::string file;
};

class Collapser {
 public:
  Collapser(Input& input, const Options& options, folded::FoldedCounts& counts)
      : lines_(input, report_), options_(options), counts_(counts), types_(counts, options) {}

  TextReport fold() {
    while (const auto line = lines_.next())
      take(*line);
    if (report_.damage.empty())
      add_stacks();
    report_.is_empty_profile = report_.samples == 0 && section_ > Section::kTypes;
    types_.finish();
    if (negative_ > 0)
      report_.left_out = plural(negative_, "count") + " below zero left out";
    return report_;
  }

 private:
  enum class Section { kHead, kTypes, kSamples, kLocations, kMappings };

  void take(std::string_view line) {
    if (line == "Samples:") {
      section_ = Section::kTypes;
    } else if (line == "Locations") {
      section_ = Section::kLocations;
    } else if (line == "Mappings") {
      section_ = Section::kMappings;
    } else if (section_ == Section::kTypes) {
      take_types(line);
      section_ = Section::kSamples;
    } else if (!trim(line).empty() && !take_row(line)) {
      lines_.ignore(line);
    }
  }

  bool take_row(std::string_view line) {
    switch (section_) {
      case Section::kSamples:
        return take_sample(line);
      case Section::kLocations:
        return take_location(line);
      case Section::kMappings:
        return take_mapping(line);
      case Section::kHead:
      case Section::kTypes:
        break;
    }
    return true;  // "PeriodType: cpu nanoseconds", comments
  }

  /// Reads "alloc_space/bytes inuse_space/bytes[dflt]".  If none is marked, the first is the
  /// default, as in stackcollapse-go.pl.
  void take_types(std::string_view line) {
    constexpr std::string_view kDefault = "[dflt]";
    std::size_t default_type = 0;
    for (std::string_view word = take_word(line); !word.empty(); word = take_word(line)) {
      if (word.ends_with(kDefault)) {
        word.remove_suffix(kDefault.size());
        default_type = names_.size();
      }
      const auto slash = std::min(word.find('/'), word.size());
      names_.push_back({std::string(word.substr(0, slash)),
                        std::string(word.substr(std::min(slash + 1, word.size())))});
    }
    if (!types_.choose(names_, default_type))
      report_.damage = no_such_type(options_.event.value_or(""), names_);
  }

  /// Reads a sample, "   39  390000000: 6 7 8", or skips a label of the previous sample,
  /// "   bytes:[288]".
  bool take_sample(std::string_view line) {
    std::string_view ids = line;
    auto values = take_until(ids, ':');
    if (!values)
      return false;
    if (ids.starts_with('['))
      return true;
    values_.clear();
    for (std::string_view word = take_word(*values); !word.empty(); word = take_word(*values)) {
      const auto value = parse_value(word);
      if (!value)
        return false;
      values_.push_back(*value);
    }
    return !values_.empty() && keep_sample(ids);
  }

  /// Adds one stack of numbers for each type.  The counts keep equal stacks once.
  bool keep_sample(std::string_view ids) {
    stack_.clear();
    stack_.push_back(0);
    for (std::string_view word = take_word(ids); !word.empty(); word = take_word(ids)) {
      const auto id = parse_number<std::uint64_t>(word);
      if (!id)
        return false;
      stack_.push_back(number_of(*id));
    }
    for (std::size_t i = 0; i < values_.size(); ++i) {
      stack_[0] = static_cast<folded::FrameId>(i);
      if (values_[i] > 0)
        kept_.add(stack_, {.whole = static_cast<std::uint64_t>(values_[i])});
      negative_ += values_[i] < 0 ? 1 : 0;
    }
    ++report_.samples;
    return true;
  }

  /// Maps a location's id, which may be any number, to a small number.
  folded::FrameId number_of(std::uint64_t id) {
    const auto [at, is_new] = numbers_.emplace(id, static_cast<folded::FrameId>(locations_.size()));
    if (is_new)
      locations_.emplace_back();
    return at->second;
  }

  /// Reads "6: 0x4b1c1a M=1 [F] name file:line s=0", or only "name file:line s=0" for a further
  /// function at the same location.
  bool take_location(std::string_view line) {
    std::string_view rest = line;
    const auto id_text = take_until(rest, ':');
    const auto id = id_text ? lone_number(*id_text) : std::nullopt;
    std::string_view words = rest;
    const auto address = id ? parse_hex(take_word(words)) : std::nullopt;
    if (address) {
      at_ = number_of(*id);
      locations_[*at_] = {*address, 0, {}};
      rest = take_mapping_id(words, locations_[*at_]);
    } else {
      rest = trim(line);
    }
    if (!at_)
      return false;
    if (!rest.empty())
      locations_[*at_].names.push_back(counts_.frames().intern(clean_name(function_of(rest))));
    return true;
  }

  /// Cuts "M=1" and "[F]" from the text; returns the rest.
  static std::string_view take_mapping_id(std::string_view text, Location& location) {
    std::string_view rest = trim(text);
    if (rest.starts_with("M=")) {
      location.mapping_id = parse_number<std::uint64_t>(take_word(rest).substr(2)).value_or(0);
      rest = trim(rest);
    }
    constexpr std::string_view kFolded = "[F]";
    return rest.starts_with(kFolded) ? trim(rest.substr(kFolded.size())) : rest;
  }

  /// Reads "1: 0x400000/0x4b2000/0x0 /usr/bin/prog buildid [FN]".
  bool take_mapping(std::string_view line) {
    const auto id_text = take_until(line, ':');
    const auto id = id_text ? lone_number(*id_text) : std::nullopt;
    std::string_view range = take_word(line);
    const auto start = take_until(range, '/');
    const auto limit = take_until(range, '/');
    if (!id || !start || !limit)
      return false;
    mappings_[*id] = {parse_hex(*start).value_or(0), parse_hex(range).value_or(0),
                      std::string(file_of(line))};
    return true;
  }

  /// Cuts "[FN]" and a build id from the end of a mapping; returns its path, which may have blanks.
  static std::string_view file_of(std::string_view text) {
    constexpr std::size_t kShortestId = 16;
    text = trim(text);
    if (const auto open = text.rfind('['); text.ends_with(']') && open != kNone)
      text = trim(text.substr(0, open));
    const auto blank = text.rfind(' ');
    const std::string_view last = blank == kNone ? "" : text.substr(blank + 1);
    const bool is_id = last.size() >= kShortestId && std::all_of(last.begin(), last.end(), is_hex);
    return is_id ? trim(text.substr(0, blank)) : text;
  }

  /// Adds the kept stacks with their names to the counts.
  void add_stacks() {
    std::vector<std::vector<folded::FrameId>> frames;
    frames.reserve(locations_.size());
    for (const Location& location : locations_)
      frames.push_back(frames_of(location));
    kept_.for_each([&](std::span<const folded::FrameId> numbers, folded::Count count) {
      stack_.clear();
      for (std::size_t i = numbers.size(); i-- > 1;)
        stack_.insert(stack_.end(), frames[numbers[i]].begin(), frames[numbers[i]].end());
      if (stack_.empty())
        stack_.push_back(counts_.frames().intern("[unknown]"));
      types_.add(stack_, numbers[0], count.whole);
    });
  }

  /// Returns the frames of a location, outermost first.
  std::vector<folded::FrameId> frames_of(const Location& location) {
    const Mapping mapping = mappings_[location.mapping_id];
    const std::uint32_t kind = module_flags(mapping.file);
    std::vector<folded::FrameId> frames;
    frames.reserve(location.names.size() + 1);
    for (std::size_t i = location.names.size(); i-- > 0;) {
      const std::uint32_t flags = frames.empty() ? kind : stream::kSymbolInlined;
      frames.push_back(counts_.frames().intern(
          frame_text(counts_.frames()[location.names[i]], flags, options_.marks)));
    }
    if (frames.empty()) {
      const std::uint64_t file_offset = location.address - mapping.start + mapping.file_offset;
      const std::string name = unnamed_text(mapping.file, file_offset);
      frames.push_back(counts_.frames().intern(frame_text(name, kind, options_.marks)));
    }
    return frames;
  }

  TextReport report_;
  TextLines lines_;
  const Options& options_;
  folded::FoldedCounts& counts_;
  SampleTypes types_;
  std::vector<SampleType> names_;
  Section section_ = Section::kHead;
  folded::FrameTable no_frames_;
  folded::FoldedCounts kept_{no_frames_};  ///< the type, then numbers of locations, leaf first
  std::vector<std::int64_t> values_;       ///< of the current sample
  std::vector<folded::FrameId> stack_;
  boost::unordered_flat_map<std::uint64_t, folded::FrameId> numbers_;
  std::vector<Location> locations_;    ///< indexed by the values of numbers_
  std::optional<folded::FrameId> at_;  ///< the location of the previous line
  boost::unordered_flat_map<std::uint64_t, Mapping> mappings_;
  std::uint64_t negative_ = 0;  ///< negative values, of the difference of two profiles
};

/// Returns the blank before the path: an absolute path starts at its root, and may have blanks; of
/// other paths the last word is taken.  kNone if there is no blank.
std::size_t start_of_path(std::string_view place) {
  for (auto blank = place.find(' '); blank != kNone; blank = place.find(' ', blank + 1)) {
    const std::string_view path = place.substr(blank + 1);
    const bool has_drive = path.size() > 2 && (is_lower(path[0]) || is_upper(path[0])) &&
                           path[1] == ':' && (path[2] == '/' || path[2] == '\\');
    if (path.starts_with('/') || path.starts_with("\\\\") || has_drive)
      return blank;
  }
  return place.rfind(' ');
}

}  // namespace

std::string_view function_of(std::string_view line) {
  const auto start_line = line.rfind(" s=");
  if (start_line == kNone || start_line + 3 == line.size() || !is_digit(line[start_line + 3]))
    return line;
  const std::string_view place = line.substr(0, start_line);  // "main.f /src/main.go:7"
  const auto blank = start_of_path(place);
  const bool is_place = blank != kNone && place.find(':', blank) != kNone;
  return is_place ? trim(place.substr(0, blank)) : place;
}

bool looks_like(std::string_view head) {
  bool is_next = false;
  while (const auto line = take_line(head)) {
    if (is_next)
      return line->find('/') != kNone;
    is_next = *line == "Samples:";
  }
  return false;
}

TextReport fold(Input& input, const Options& options, folded::FoldedCounts& counts) {
  return Collapser(input, options, counts).fold();
}

}  // namespace pe::fold::pprof_raw

// SPDX-License-Identifier: MIT
#include "stackfold/formats/pprof/pprof.h"

#include <fmt/format.h>
#include <protozero/pbf_reader.hpp>

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <utility>

#include "base/text.h"
#include "stackfold/formats/pprof/pprof_fields.h"
#include "stackfold/frame_text.h"
#include "stackfold/gzip.h"
#include "stream/records/sample.h"

namespace pe::fold::pprof {
namespace {

using Reader = protozero::pbf_reader;

/// Limits of the tables' lengths.  No program needs longer ones, and they would cost many times the
/// memory of their bytes.
constexpr std::size_t kMaxViews = 16UL << 20U;  ///< for samples and strings, 16 bytes each
constexpr std::size_t kMaxRows = 4UL << 20U;    ///< for each other table

/// The limit of functions at one address; the reader drops the outer ones beyond it.
constexpr std::size_t kMaxInlined = 1000;

/// Returns the bytes of a string or message.  Skips any other field and returns no bytes.
std::string_view view_of(Reader& reader) {
  if (reader.wire_type() != protozero::pbf_wire_type::length_delimited) {
    reader.skip();
    return {};
  }
  const auto view = reader.get_view();
  return {view.data(), view.size()};
}

/// Returns a varint.  Skips any other field and returns 0.
std::uint64_t number_of(Reader& reader) {
  if (reader.wire_type() == protozero::pbf_wire_type::varint)
    return reader.get_uint64();
  reader.skip();
  return 0;
}

/// Appends repeated numbers, which are packed or single.
template <typename Number>
void append_numbers(Reader& reader, std::vector<Number>& to) {
  if (reader.wire_type() == protozero::pbf_wire_type::length_delimited) {
    for (const auto number : reader.get_packed_uint64())
      if (to.size() <= kMaxFrames)
        to.push_back(static_cast<Number>(number));
  } else {
    to.push_back(static_cast<Number>(number_of(reader)));
  }
}

/// Returns the first `N` fields of a message in which all needed fields are numbers.
template <std::size_t N>
std::array<std::uint64_t, N + 1> numbers_of(std::string_view message) {
  std::array<std::uint64_t, N + 1> numbers{};
  Reader reader(message.data(), message.size());
  while (reader.next()) {
    if (reader.tag() <= N)
      numbers[reader.tag()] = number_of(reader);
    else
      reader.skip();
  }
  return numbers;
}

void add_mapping(std::string_view message, Profile& profile) {
  const auto fields = numbers_of<5>(message);  // id, start, limit, offset, file name
  profile.mappings[fields[1]] = {fields[2], fields[4], static_cast<std::int64_t>(fields[5])};
}

void add_function(std::string_view message, Profile& profile) {
  const auto fields = numbers_of<2>(message);  // id, name
  profile.functions[fields[1]] = static_cast<std::int64_t>(fields[2]);
}

void add_location(std::string_view message, Profile& profile) {
  std::uint64_t id = 0;
  Location location;
  Reader reader(message.data(), message.size());
  while (reader.next()) {
    switch (reader.tag()) {
      case field::kId:
        id = number_of(reader);
        break;
      case field::kMappingId:
        location.mapping_id = number_of(reader);
        break;
      case field::kAddress:
        location.address = number_of(reader);
        break;
      case field::kLine:
        if (location.lines.size() < kMaxInlined)
          location.lines.push_back({numbers_of<1>(view_of(reader))[1]});
        else
          reader.skip();
        break;
      default:
        reader.skip();
    }
  }
  profile.locations[id] = std::move(location);
}

void add_type(std::string_view message, Profile& profile) {
  const auto fields = numbers_of<2>(message);  // type, unit
  profile.types.emplace_back(static_cast<std::int64_t>(fields[1]),
                             static_cast<std::int64_t>(fields[2]));
}

void take_message(std::uint32_t field, std::string_view message, Profile& profile) {
  switch (field) {
    case field::kSampleType:
      return add_type(message, profile);
    case field::kSample:
      profile.samples.push_back(message);
      return;
    case field::kMapping:
      return add_mapping(message, profile);
    case field::kLocation:
      return add_location(message, profile);
    case field::kFunction:
      return add_function(message, profile);
    case field::kStringTable:
      profile.strings.push_back(message);
      return;
    default:
      return;
  }
}

/// Reads one field.  False if its content is damaged; later fields are still readable.
bool take_field(Reader& reader, Profile& profile) {
  if (reader.tag() == field::kDefaultSampleType) {
    profile.default_type = static_cast<std::int64_t>(number_of(reader));
    return true;
  }
  const std::uint32_t field = reader.tag();
  const std::string_view message = view_of(reader);
  try {
    take_message(field, message, profile);
  } catch (const protozero::exception&) {
    return false;
  }
  return true;
}

bool is_too_long(const Profile& profile) {
  return profile.strings.size() > kMaxViews || profile.samples.size() > kMaxViews ||
         profile.locations.size() > kMaxRows || profile.functions.size() > kMaxRows ||
         profile.mappings.size() > kMaxRows || profile.types.size() > kMaxRows;
}

}  // namespace

Profile read_profile(std::string_view bytes) {
  Profile profile;
  Reader reader(bytes.data(), bytes.size());
  std::uint64_t damaged = 0;
  try {
    while (reader.next()) {
      damaged += take_field(reader, profile) ? 0 : 1;
      if (is_too_long(profile)) {
        profile.damage = "a table of the profile is implausibly long";
        break;
      }
    }
  } catch (const protozero::exception&) {
    profile.damage = "the profile is damaged or cut off";
  }
  if (damaged > 0 && profile.damage.empty())
    profile.damage = "damaged entries of the profile left out: " + std::to_string(damaged);
  return profile;
}

namespace {

void add_label(Reader& reader, Sample& sample) {
  const auto fields = numbers_of<3>(view_of(reader));  // key, text, number
  sample.labels.push_back({static_cast<std::int64_t>(fields[1]),
                           static_cast<std::int64_t>(fields[2]),
                           static_cast<std::int64_t>(fields[3])});
}

}  // namespace

bool read_sample(std::string_view bytes, Sample& sample) {
  sample.location_ids.clear();
  sample.values.clear();
  sample.labels.clear();
  Reader reader(bytes.data(), bytes.size());
  try {
    while (reader.next()) {
      if (reader.tag() == field::kLocationId)
        append_numbers(reader, sample.location_ids);
      else if (reader.tag() == field::kValue)
        append_numbers(reader, sample.values);
      else if (reader.tag() == field::kLabel && sample.labels.size() < kMaxLabels)
        add_label(reader, sample);
      else
        reader.skip();
    }
  } catch (const protozero::exception&) {
    return false;
  }
  return sample.location_ids.size() <= kMaxFrames;
}

namespace {

Bytes bytes_in(std::string_view text) { return std::as_bytes(std::span(text)); }

class Collapser {
 public:
  Collapser(const Profile& profile, const Options& options, folded::FoldedCounts& counts)
      : profile_(profile), options_(options), counts_(counts), types_(counts, options) {}

  void fold(TextReport& report) {
    const std::vector<SampleType> types = sample_types();
    if (types.empty()) {
      report.damage = "not a pprof profile (unpack other files: gzip -dc FILE | stackfold)";
      return;
    }
    if (!types_.choose(types, default_type(types))) {
      report.damage = no_such_type(options_.event.value_or(""), types);
      return;
    }
    std::uint64_t damaged = 0;
    for (const std::string_view bytes : profile_.samples) {
      if (read_sample(bytes, sample_) && add_sample())
        ++report.samples;
      else
        ++damaged;
    }
    types_.finish();
    if (negative_ > 0)
      report.left_out = plural(negative_, "count") + " below zero left out";
    report.damage = describe_damage(damaged);
    report.is_empty_profile = profile_.samples.empty();
  }

 private:
  [[nodiscard]] std::string describe_damage(std::uint64_t damaged_samples) const {
    std::string text;
    const auto add = [&text](std::uint64_t count, std::string_view noun, std::string_view what) {
      if (count > 0)
        text += (text.empty() ? "" : ", ") + plural(count, noun) + std::string(what);
    };
    add(damaged_samples, "damaged sample", " left out");
    add(undefined_, "location", " that it does not define");
    add(nameless_, "location", " with a function, mapping or string that it does not define");
    add(nameless_types_, "sample type", " with a string that it does not define");
    return text;
  }

  struct Place {
    std::uint32_t begin = 0, count = 0;  ///< in pool_
  };

  [[nodiscard]] std::vector<SampleType> sample_types() {
    std::vector<SampleType> types;
    types.reserve(profile_.types.size());
    for (const auto& [type, unit] : profile_.types) {
      types.push_back({std::string(profile_.string(type)), std::string(profile_.string(unit))});
      nameless_types_ += profile_.defines_string(type) && profile_.defines_string(unit) ? 0 : 1;
    }
    return types;
  }

  /// Chooses as pprof does: the profile's default type, else the last type.
  [[nodiscard]] std::size_t default_type(std::span<const SampleType> types) const {
    const std::string_view wanted = profile_.string(profile_.default_type);
    for (std::size_t i = 0; i < types.size(); ++i)
      if (!wanted.empty() && types[i].type == wanted)
        return i;
    return types.size() - 1;
  }

  /// Adds the current sample.  False if the stack is too deep, or lacks a value that is folded.
  bool add_sample() {
    if (sample_.values.size() < types_.values_needed())
      return false;
    stack_.clear();
    if (const auto root = root_of_thread())
      stack_.push_back(*root);
    const auto& ids = sample_.location_ids;
    for (std::size_t i = ids.size(); i-- > 0;) {
      const Place place = place_of(ids[i]);
      const auto first = pool_.begin() + place.begin;
      stack_.insert(stack_.end(), first, first + place.count);
      if (stack_.size() > kMaxFrames)
        return false;
    }
    if (ids.empty())
      stack_.push_back(counts_.frames().intern("[unknown]"));
    for (std::size_t i = 0; i < sample_.values.size(); ++i) {
      const std::int64_t value = sample_.values[i];
      if (value > 0)
        types_.add(stack_, i, static_cast<std::uint64_t>(value));
      negative_ += value < 0 ? 1 : 0;
    }
    return true;
  }

  /// Returns the thread's frame from the labels in this project's profiles and in those converted
  /// from perf's.
  [[nodiscard]] std::optional<folded::FrameId> root_of_thread() {
    const Label* comm = nullptr;
    std::uint32_t pid = 0, tid = 0;
    for (const Label& label : sample_.labels) {
      const std::string_view key = profile_.string(label.key);
      if (key == "comm" && label.text != 0)
        comm = &label;
      else if (key == "pid")
        pid = static_cast<std::uint32_t>(label.number);
      else if (key == "tid")
        tid = static_cast<std::uint32_t>(label.number);
    }
    if (comm == nullptr)
      return std::nullopt;
    return counts_.frames().intern(root_text(profile_.string(comm->text), pid, tid, options_.root));
  }

  /// Returns the frames of a location, outermost first.  Converts each location once.
  Place place_of(std::uint64_t id) {
    const auto known = places_.find(id);
    if (known != places_.end())
      return known->second;
    const auto begin = pool_.size();
    const auto location = profile_.locations.find(id);
    if (location == profile_.locations.end()) {
      pool_.push_back(counts_.frames().intern("[unknown]"));
      ++undefined_;
    } else {
      add_frames(location->second);
      nameless_ += defines_all_of(location->second) ? 0 : 1;
    }
    const Place place{static_cast<std::uint32_t>(begin),
                      static_cast<std::uint32_t>(pool_.size() - begin)};
    places_.emplace(id, place);
    return place;
  }

  /// Are all items that a location refers to defined?  The number 0 refers to no item.
  [[nodiscard]] bool defines_all_of(const Location& location) const {
    const auto mapping = profile_.mappings.find(location.mapping_id);
    const bool has_mapping = mapping != profile_.mappings.end();
    if (has_mapping ? !profile_.defines_string(mapping->second.file_name)
                    : location.mapping_id != 0)
      return false;
    return std::all_of(location.lines.begin(), location.lines.end(), [this](const Line& line) {
      const auto function = profile_.functions.find(line.function_id);
      return function == profile_.functions.end() ? line.function_id == 0
                                                  : profile_.defines_string(function->second);
    });
  }

  void add_frames(const Location& location) {
    const auto found = profile_.mappings.find(location.mapping_id);
    const Mapping mapping = found == profile_.mappings.end() ? Mapping{} : found->second;
    const std::string_view module = profile_.string(mapping.file_name);
    const std::uint32_t kind = module_flags(module);
    for (auto line = location.lines.rbegin(); line != location.lines.rend(); ++line) {
      const std::uint32_t flags = line == location.lines.rbegin() ? kind : stream::kSymbolInlined;
      add_frame(name_of(*line), flags);
    }
    if (!location.lines.empty())
      return;
    // Not symbolized: uses the same text as for a stream's frames.
    const std::uint64_t file_offset = location.address - mapping.start + mapping.file_offset;
    add_frame(module == "[kernel.kallsyms]" ? unnamed_text("[kernel]", location.address)
                                            : unnamed_text(module, file_offset),
              kind);
  }

  [[nodiscard]] std::string_view name_of(const Line& line) const {
    const auto function = profile_.functions.find(line.function_id);
    return function == profile_.functions.end() ? "" : profile_.string(function->second);
  }

  void add_frame(std::string_view name, std::uint32_t flags) {
    pool_.push_back(counts_.frames().intern(frame_text(name, flags, options_.marks)));
  }

  const Profile& profile_;
  const Options& options_;
  folded::FoldedCounts& counts_;
  SampleTypes types_;
  boost::unordered_flat_map<std::uint64_t, Place> places_;
  std::vector<folded::FrameId> pool_;
  Sample sample_;  ///< the current sample
  std::vector<folded::FrameId> stack_;
  std::uint64_t undefined_ = 0;       ///< locations that samples name, but the profile lacks
  std::uint64_t nameless_ = 0;        ///< locations that name an undefined item
  std::uint64_t nameless_types_ = 0;  ///< sample types that name an undefined string
  std::uint64_t negative_ = 0;        ///< negative values, of the difference of two profiles
};

/// Do the bytes start with a sample type or the period's type?  That is a message of two small
/// numbers: "\n\4\10\1\20\2".
bool begins_with_type(std::string_view bytes) {
  constexpr char kSampleType = '\x0a', kPeriodType = '\x5a', kNumberOne = '\x08';
  constexpr char kLongestType = 22;
  return bytes.size() > 3 && (bytes[0] == kSampleType || bytes[0] == kPeriodType) && bytes[1] > 0 &&
         bytes[1] <= kLongestType && bytes[2] == kNumberOne;
}

/// Do the bytes start with the time in nanoseconds since 1970, which Go writes first?  It is a
/// number of nine bytes, and all but the last have the highest bit set.
bool begins_with_time(std::string_view bytes) {
  constexpr char kTime = '\x48';
  constexpr std::size_t kBytes = 9;
  const auto is_high = [](char c) { return static_cast<unsigned char>(c) >= 0x80; };
  return bytes.size() > 1 + kBytes && bytes[0] == kTime &&
         std::all_of(bytes.begin() + 1, bytes.begin() + kBytes, is_high) && !is_high(bytes[kBytes]);
}

}  // namespace

bool looks_like(std::string_view head) {
  if (is_gzip(bytes_in(head)))
    return true;
  return begins_with_type(head) || begins_with_time(head);
}

TextReport fold(Input& input, const Options& options, folded::FoldedCounts& counts) {
  TextReport report;
  std::string damage;
  const std::string bytes = read_unpacked(input, kMaxBytes, damage);
  const Profile profile = read_profile(bytes);
  Collapser(profile, options, counts).fold(report);
  if (!profile.damage.empty() && !profile.types.empty())
    report.damage = profile.damage;
  if (!damage.empty())
    report.damage = damage;  // the cause of all other damage
  return report;
}

}  // namespace pe::fold::pprof

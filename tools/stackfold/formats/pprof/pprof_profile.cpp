// SPDX-License-Identifier: MIT
#include "stackfold/formats/pprof/pprof_profile.h"

#include <array>
#include <protozero/pbf_reader.hpp>
#include <utility>

#include "stackfold/formats/pprof/pprof_fields.h"

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

}  // namespace pe::fold::pprof

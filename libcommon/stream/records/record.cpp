// SPDX-License-Identifier: MIT
#include "stream/records/record.h"

#include "base/parse_number.h"

namespace pe::stream {
namespace {

/// A text is its length, including NULs that pad it, and its bytes.
std::optional<std::string> take_text(ByteReader& reader) {
  const auto bytes = reader.take<std::uint32_t>();
  const auto text = bytes ? reader.take_bytes(*bytes) : std::nullopt;
  if (!text)
    return std::nullopt;
  const std::string_view padded(reinterpret_cast<const char*>(text->data()), text->size());
  return std::string(padded.substr(0, padded.find('\0')));
}

std::string quoted_word(const std::string& word) {
  if (!word.empty() && word.find_first_of(" \t\n'\"") == std::string::npos)
    return word;
  const char quote = word.find('\'') == std::string::npos ? '\'' : '"';
  return quote + word + quote;
}

/// Returns the words of a command line, joined by blanks; if `skips_options`, those after the first
/// "--", if there are any.
std::optional<std::string> words_after(Bytes data, bool skips_options) {
  ByteReader reader(data);
  const auto words = reader.take<std::uint32_t>();
  if (!words)
    return std::nullopt;
  std::string line;
  for (std::uint32_t i = 0; i < *words; ++i) {
    const auto word = take_text(reader);
    if (!word)
      return std::nullopt;
    if (skips_options && *word == "--" && i + 1 < *words) {
      skips_options = false;
      line.clear();
      continue;
    }
    line += (line.empty() ? "" : " ") + quoted_word(*word);
  }
  return line;
}

}  // namespace

std::optional<FeatureRecord> parse_feature(const Record& record) {
  ByteReader reader(record.body());
  const auto feature = reader.take<std::uint64_t>();
  if (record.type != kRecordHeaderFeature || !feature)
    return std::nullopt;
  return FeatureRecord{*feature, reader.left()};
}

bool is_of_later_version(const Record& record) {
  const auto feature = parse_feature(record);
  if (!feature || feature->feature != kFeatureVersion)
    return false;
  const std::string text = feature->text().value_or("");
  const std::size_t mark = text.find(kStreamMark);
  if (!text.starts_with("stackpipe ") || mark == std::string::npos)
    return false;
  const std::string_view number = std::string_view(text).substr(mark + kStreamMark.size());
  return parse_number<std::uint64_t>(number.substr(0, number.find(','))).value_or(0) >
         kStreamVersion;
}

std::optional<std::string> FeatureRecord::text() const {
  ByteReader reader(data);
  return take_text(reader);
}

std::optional<std::string> FeatureRecord::command_line() const { return words_after(data, false); }

std::optional<std::string> FeatureRecord::recorded_command() const {
  return words_after(data, true);
}

std::optional<std::uint64_t> ClockData::wall_of(std::uint64_t time_ns) const {
  std::uint64_t wall = 0;
  const bool is_earlier = time_ns < clock_ns;
  const bool is_too_far = is_earlier ? __builtin_sub_overflow(wall_ns, clock_ns - time_ns, &wall)
                                     : __builtin_add_overflow(wall_ns, time_ns - clock_ns, &wall);
  return is_too_far ? std::nullopt : std::optional(wall);
}

std::optional<ClockData> parse_clock_data(const FeatureRecord& record) {
  constexpr std::uint32_t kVersion = 1;
  ByteReader reader(record.data);
  const auto version = reader.take<std::uint32_t>();
  const auto clock = reader.take<std::uint32_t>();
  const auto wall_ns = reader.take<std::uint64_t>();
  const auto clock_ns = reader.take<std::uint64_t>();
  if (record.feature != kFeatureClockData || version != kVersion || !clock || !wall_ns || !clock_ns)
    return std::nullopt;
  return ClockData{*wall_ns, *clock_ns};
}

}  // namespace pe::stream

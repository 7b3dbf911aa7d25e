// SPDX-License-Identifier: MIT
#include "stream/records/tracing_data.h"

#include <algorithm>
#include <optional>
#include <string>

#include "base/parse_number.h"

namespace pe::stream {
namespace {

std::optional<Bytes> take_sized(ByteReader& reader) {
  const auto size = reader.take<std::uint64_t>();
  return size ? reader.take_bytes(*size) : std::nullopt;
}

/// Skips all before the lists of tracepoints.
bool skip_head(ByteReader& reader) {
  constexpr std::string_view kMagic{"\x17\x08\x44tracing", 10};
  const auto magic = reader.take_bytes(kMagic.size());
  if (!magic || text_of(*magic) != kMagic || !reader.take_string())  // the version
    return false;
  const auto is_big_endian = reader.take<std::uint8_t>();
  constexpr std::uint64_t kSizes = sizeof(std::uint8_t) + sizeof(std::uint32_t);  // long and page
  if (is_big_endian != 0 || !reader.skip(kSizes))
    return false;
  for (const std::string_view name : {"header_page", "header_event"})
    if (reader.take_string() != name || !take_sized(reader))
      return false;
  return true;
}

/// Returns the text after `key` up to the end of its line.
std::string_view line_after(std::string_view format, std::string_view key) {
  const auto at = format.starts_with(key) ? 0 : format.find("\n" + std::string(key));
  if (at == format.npos)
    return {};
  const std::string_view rest = format.substr(at + key.size() + (at == 0 ? 0 : 1));
  return rest.substr(0, rest.find('\n'));
}

/// Reads the formats of a group.
bool take_group(ByteReader& reader, std::string_view group,
                const std::function<void(const DescribedTracepoint&)>& use) {
  const auto count = reader.take<std::uint32_t>();
  for (std::uint32_t i = 0; i < count.value_or(0); ++i) {
    const auto bytes = take_sized(reader);
    if (!bytes)
      return false;
    const std::string_view format = text_of(*bytes);
    if (const auto id = parse_number<std::uint64_t>(line_after(format, "ID: ")))
      use({.group = group, .name = line_after(format, "name: "), .id = *id, .format = format});
  }
  return count.has_value();
}

}  // namespace

bool for_each_described_tracepoint(const Record& record,
                                   const std::function<void(const DescribedTracepoint&)>& use) {
  ByteReader reader(record.bytes);
  const auto header = reader.take<perf_event_header>();
  if (!header ||
      !reader.skip(std::max<std::size_t>(header->size, sizeof *header) - sizeof *header) ||
      !skip_head(reader) || !take_group(reader, "ftrace", use))
    return false;
  const auto groups = reader.take<std::uint32_t>();
  for (std::uint32_t i = 0; i < groups.value_or(0); ++i) {
    const auto group = reader.take_string();
    if (!group || !take_group(reader, *group, use))
      return false;
  }
  return groups.has_value();
}

}  // namespace pe::stream

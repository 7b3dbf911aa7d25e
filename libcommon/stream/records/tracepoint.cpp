// SPDX-License-Identifier: MIT
#include "stream/records/tracepoint.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <optional>
#include <string>
#include <utility>

#include "base/parse_number.h"

namespace pe::stream {
namespace {

/// Parses "\tfield:long prev_state;\toffset:32;\tsize:8;\tsigned:0;".  An array is "char comm[16]".
std::optional<TracepointField> parse_field_line(std::string_view line) {
  const auto after = [line](std::string_view key) -> std::optional<std::uint32_t> {
    const auto begin = line.find(key);
    if (begin == line.npos)
      return std::nullopt;
    const std::string_view rest = line.substr(begin + key.size());
    return parse_number<std::uint32_t>(rest.substr(0, rest.find(';')));
  };
  constexpr std::string_view kStart = "\tfield:";
  const auto offset = after(";\toffset:"), size = after(";\tsize:");
  if (!line.starts_with(kStart) || !offset || !size)
    return std::nullopt;
  std::string_view declaration = line.substr(kStart.size());
  declaration = declaration.substr(0, declaration.find(';'));
  if (const auto bracket = declaration.rfind('['); declaration.ends_with(']') && bracket > 0)
    declaration = declaration.substr(0, bracket);
  const std::string_view name = declaration.substr(declaration.rfind(' ') + 1);
  if (name.empty())
    return std::nullopt;
  return TracepointField{.offset = *offset,
                         .size = *size,
                         .name = std::string(name),
                         .is_signed = after(";\tsigned:") == 1U};
}

}  // namespace

std::optional<std::int64_t> number_at(Bytes data, std::uint64_t offset, std::size_t size,
                                      bool is_signed) {
  if (offset > data.size() || size > data.size() - offset || size == 0 || size > 8)
    return std::nullopt;
  std::uint64_t word = 0;
  std::memcpy(&word, data.data() + offset, size);  // little-endian, as all machines that we know
  const auto unused_bits = static_cast<unsigned>(64 - 8 * size);
  word <<= unused_bits;
  return is_signed ? std::bit_cast<std::int64_t>(word) >> unused_bits
                   : std::bit_cast<std::int64_t>(word >> unused_bits);
}

std::string unit_of_field(std::string_view field) {
  const auto has = [field](std::string_view word) { return field.find(word) != field.npos; };
  if (has("bytes") || has("len") || has("size"))
    return "bytes";
  if (has("pages"))
    return "pages";
  return has("_ns") || has("runtime") || has("delay") ? "ns" : "units";
}

std::optional<TracepointField> parse_tracepoint_field(std::string_view format,
                                                      std::string_view field) {
  for (TracepointField& known : parse_tracepoint_fields(format))
    if (known.name == field)
      return std::move(known);
  return std::nullopt;
}

std::vector<TracepointField> parse_tracepoint_fields(std::string_view format) {
  std::vector<TracepointField> fields;
  while (!format.empty()) {
    const std::string_view line = format.substr(0, format.find('\n'));
    format.remove_prefix(std::min(line.size() + 1, format.size()));
    if (auto field = parse_field_line(line))
      fields.push_back(std::move(*field));
  }
  return fields;
}

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

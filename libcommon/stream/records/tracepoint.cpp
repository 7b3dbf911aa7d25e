// SPDX-License-Identifier: MIT
#include "stream/records/tracepoint.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <optional>
#include <string>
#include <system_error>
#include <utility>

#include "base/error.h"
#include "base/io/input.h"
#include "base/parse_number.h"

namespace pe::stream {
namespace {

constexpr std::array kFolders = {"/sys/kernel/tracing/events", "/sys/kernel/debug/tracing/events"};

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

/// Reads a file in the tracepoint's folder in tracefs.  Throws Error.
std::string read_tracepoint_file(const std::string& name, std::string_view file) {
  const auto colon = name.find(':');
  const std::string path =
      fmt::format("{}/{}/{}", name.substr(0, colon), name.substr(colon + 1), file);
  constexpr std::size_t kMaxBytes = 64UL * 1024;
  const char* readable = nullptr;
  const char* forbidden = nullptr;
  for (const char* folder : kFolders) {
    if (::access(folder, R_OK | X_OK) != 0) {
      if (errno == EACCES && forbidden == nullptr)
        forbidden = folder;
      continue;
    }
    readable = folder;
    if (auto text = read_small_file(fmt::format("{}/{}", folder, path), kMaxBytes))
      return *text;
  }
  if (readable == nullptr && forbidden != nullptr)
    throw Error(fmt::format("{}: {} may not be read: need root, or its group", name, forbidden));
  if (readable == nullptr)
    throw Error(name +
                ": tracepoints need a readable tracefs: as root, "
                "mount -t tracefs tracefs /sys/kernel/tracing");
  throw Error(name + ": no such tracepoint in " + readable);
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

bool is_tracepoint_name(const std::string& name) {
  const auto is_word = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-';
  };
  const auto colon = name.find(':');
  return colon != std::string::npos && colon > 0 && colon + 1 < name.size() &&
         std::all_of(name.begin(), name.begin() + static_cast<std::ptrdiff_t>(colon), is_word) &&
         std::all_of(name.begin() + static_cast<std::ptrdiff_t>(colon) + 1, name.end(), is_word);
}

std::uint64_t tracepoint_id(const std::string& name) {
  std::string id = read_tracepoint_file(name, "id");
  if (id.ends_with('\n'))
    id.pop_back();
  const auto number = parse_number<std::uint64_t>(id);
  if (!number)
    throw Error(name + ": its id is not a number");
  return *number;
}

TracepointField tracepoint_field(const std::string& name, std::string_view field) {
  const auto found = parse_tracepoint_field(read_tracepoint_file(name, "format"), field);
  if (!found)
    throw Error(fmt::format("{}: has no field '{}'", name, field));
  return *found;
}

std::vector<TracepointField> tracepoint_fields(const std::string& name) {
  return parse_tracepoint_fields(read_tracepoint_file(name, "format"));
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

std::vector<std::string> tracepoint_names() {
  std::vector<std::string> names;
  for (const char* folder : kFolders) {
    std::error_code error;
    std::filesystem::recursive_directory_iterator entries(folder, error);
    for (; !error && entries != std::filesystem::recursive_directory_iterator();
         entries.increment(error)) {
      if (entries.depth() > 0)
        entries.disable_recursion_pending();
      const std::string group = entries->path().parent_path().filename().string();
      std::string name = fmt::format("{}:{}", group, entries->path().filename().string());
      if (entries.depth() == 1 && entries->is_directory(error) && is_tracepoint_name(name))
        names.push_back(std::move(name));
    }
    if (!names.empty())
      break;
  }
  std::sort(names.begin(), names.end());
  return names;
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

// SPDX-License-Identifier: MIT
#include "stream/records/tracepoint.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "base/error.h"
#include "base/io/input.h"
#include "base/parse_number.h"

namespace pe::stream {
namespace {

/// Reads a file in the tracepoint's folder in tracefs.  Throws Error.
std::string read_tracepoint_file(const std::string& name, std::string_view file) {
  const auto colon = name.find(':');
  const std::string path =
      fmt::format("{}/{}/{}", name.substr(0, colon), name.substr(colon + 1), file);
  constexpr std::array kFolders = {"/sys/kernel/tracing/events",
                                   "/sys/kernel/debug/tracing/events"};
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
    throw Error(name + ": its id is no number");
  return *number;
}

TracepointField tracepoint_field(const std::string& name, std::string_view field) {
  const auto found = parse_tracepoint_field(read_tracepoint_file(name, "format"), field);
  if (!found)
    throw Error(fmt::format("{}: has no field '{}'", name, field));
  return *found;
}

std::optional<TracepointField> parse_tracepoint_field(std::string_view format,
                                                      std::string_view field) {
  // "\tfield:long prev_state;\toffset:32;\tsize:8;\tsigned:1;"
  const auto at = format.find(fmt::format(" {};\toffset:", field));
  const std::string_view line =
      at == format.npos ? "" : format.substr(at, format.find('\n', at) - at);
  const auto number_behind = [line](std::string_view key) -> std::optional<std::uint32_t> {
    const auto begin = line.find(key);
    if (begin == line.npos)
      return std::nullopt;
    const std::string_view rest = line.substr(begin + key.size());
    return parse_number<std::uint32_t>(rest.substr(0, rest.find(';')));
  };
  const auto offset = number_behind("\toffset:"), size = number_behind("\tsize:");
  if (!offset || !size)
    return std::nullopt;
  return TracepointField{*offset, *size};
}

}  // namespace pe::stream

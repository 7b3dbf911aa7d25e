// SPDX-License-Identifier: MIT
#include "recording/counters/tracefs.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <system_error>
#include <utility>

#include "base/error.h"
#include "base/io/input.h"
#include "base/parse_number.h"
#include "recording/refused.h"

namespace pe::recording {
namespace {

constexpr std::array kFolders = {"/sys/kernel/tracing/events", "/sys/kernel/debug/tracing/events"};

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
    throw Refused(fmt::format("{}: {} may not be read: need root, or its group", name, forbidden),
                  kNoCounters);
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
    throw Error(name + ": its id is not a number");
  return *number;
}

stream::TracepointField tracepoint_field(const std::string& name, std::string_view field) {
  const auto found = stream::parse_tracepoint_field(read_tracepoint_file(name, "format"), field);
  if (!found)
    throw Error(fmt::format("{}: has no field '{}'", name, field));
  return *found;
}

std::vector<stream::TracepointField> tracepoint_fields(const std::string& name) {
  return stream::parse_tracepoint_fields(read_tracepoint_file(name, "format"));
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

}  // namespace pe::recording

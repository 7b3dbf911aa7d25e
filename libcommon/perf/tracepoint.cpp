// SPDX-License-Identifier: MIT
#include "perf/tracepoint.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>

#include "base/error.h"
#include "base/parse_number.h"
#include "io/input.h"

namespace pe::perf {

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
  const auto colon = name.find(':');
  const std::string path = fmt::format("{}/{}/id", name.substr(0, colon), name.substr(colon + 1));
  constexpr std::array kFolders = {"/sys/kernel/tracing/events",
                                   "/sys/kernel/debug/tracing/events"};
  constexpr std::size_t kMaxIdBytes = 64;
  const char* readable = nullptr;
  for (const char* folder : kFolders) {
    if (::access(folder, R_OK | X_OK) != 0)
      continue;
    readable = folder;
    auto id = io::read_small_file(fmt::format("{}/{}", folder, path), kMaxIdBytes);
    if (id && id->ends_with('\n'))
      id->pop_back();
    if (const auto number = id ? parse_number<std::uint64_t>(*id) : std::nullopt)
      return *number;
  }
  if (readable == nullptr)
    throw Error(name +
                ": tracepoints need a readable tracefs: as root, "
                "mount -t tracefs tracefs /sys/kernel/tracing");
  throw Error(name + ": no such tracepoint in " + readable);
}

}  // namespace pe::perf

// SPDX-License-Identifier: MIT
#include "objects/vdso.h"

#include <sys/auxv.h>

#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/io/input.h"
#include "base/parse_number.h"

namespace pe::objects {
namespace {

constexpr std::size_t kMaxMapsBytes = 64U << 20;
constexpr std::uint64_t kMaxVdsoBytes = 1U << 20;  // x86-64 has two pages

/// Returns the end of the mapping that starts at `start`: "start-end perms ...", proc(5).
std::optional<std::uint64_t> end_of_mapping(std::string_view maps, std::uint64_t start) {
  while (!maps.empty()) {
    const std::string_view line = maps.substr(0, maps.find('\n'));
    maps.remove_prefix(std::min(line.size() + 1, maps.size()));
    const std::size_t dash = line.find('-');
    const std::size_t blank = line.find(' ');
    if (dash == std::string_view::npos || blank == std::string_view::npos || blank < dash)
      continue;
    const auto from = parse_number<std::uint64_t>(line.substr(0, dash), 16);
    if (from == start)
      return parse_number<std::uint64_t>(line.substr(dash + 1, blank - dash - 1), 16);
  }
  return std::nullopt;
}

}  // namespace

OpenResult own_vdso() {
  const std::uint64_t start = ::getauxval(AT_SYSINFO_EHDR);
  if (start == 0)
    return OpenFailure::kMissing;
  const auto maps = read_small_file("/proc/self/maps", kMaxMapsBytes);
  if (!maps)
    return OpenFailure::kUnreadable;
  const auto end = end_of_mapping(*maps, start);
  if (!end || *end <= start || *end - start > kMaxVdsoBytes)
    return OpenFailure::kMissing;
  // AT_SYSINFO_EHDR is an address; there is no pointer to derive it from.
  const auto* memory =
      reinterpret_cast<const std::byte*>(start);  // NOLINT(performance-no-int-to-ptr)
  return Image::from_memory({memory, memory + (*end - start)});
}

}  // namespace pe::objects

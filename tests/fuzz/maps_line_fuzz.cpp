// Parses any text as a line of /proc/PID/maps.  An accepted line is a mapping of at least one byte,
// with its path at the end of the line.
// SPDX-License-Identifier: MIT
#include <cstddef>
#include <cstdlib>
#include <string_view>

#include "stream/proc/maps.h"

extern "C" int LLVMFuzzerTestOneInput(const char* data, std::size_t size) {
  const std::string_view line(data, size);
  const auto map = pe::stream::parse_maps_line(line);
  if (!map)
    return 0;
  if (map->start >= map->end || !line.ends_with(map->path) || map->path.starts_with(' '))
    std::abort();
  return 0;
}

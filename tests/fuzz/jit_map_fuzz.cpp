// Reads any lines as a perf map.  A lookup finds the newest entry that covers an address.
// SPDX-License-Identifier: MIT
#include <cstdlib>
#include <vector>

#include "names/jit_map.h"

extern "C" int LLVMFuzzerTestOneInput(const char* data, std::size_t size) {
  std::string_view text(data, size);
  pe::names::JitMap map;
  std::uint64_t lines = 0;
  std::vector<std::uint64_t> starts;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    ++lines;
    if (!map.add_line(line))
      continue;
    // At its start, the line just added hides all others.
    std::string number(line.substr(line.starts_with("0x") ? 2 : 0));
    starts.push_back(std::strtoull(number.c_str(), nullptr, 16));
    const auto found = map.find(starts.back());
    if (!found || found->start != starts.back() || found->offset != 0 ||
        !line.ends_with(found->name))
      std::abort();
  }
  if (map.size() + map.bad_lines() != lines)
    std::abort();
  for (const std::uint64_t start : starts)
    if (const auto found = map.find(start); !found || found->start + found->offset != start)
      std::abort();
  return 0;
}

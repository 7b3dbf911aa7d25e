// SPDX-License-Identifier: MIT
#include "languages/common/code.h"

#include <algorithm>
#include <limits>

namespace pe::languages {

bool LineTable::add(std::uint64_t end, std::int64_t line) {
  constexpr std::int64_t kMostLine = std::numeric_limits<std::int32_t>::max();
  if (end > std::numeric_limits<std::uint32_t>::max())
    return false;
  const auto shown = static_cast<std::uint32_t>(std::clamp<std::int64_t>(line, 0, kMostLine));
  if (!entries_.empty() && entries_.back().line == shown)
    entries_.back().end = static_cast<std::uint32_t>(end);
  else
    entries_.push_back({static_cast<std::uint32_t>(end), shown});
  return true;
}

std::uint32_t LineTable::line_at(std::uint64_t place) const noexcept {
  const auto entry = std::ranges::upper_bound(entries_, place, {}, &Entry::end);
  return entry == entries_.end() ? 0 : entry->line;
}

}  // namespace pe::languages

// SPDX-License-Identifier: MIT
#include "malloctrace/preload/stacks/site_table.h"

namespace pe::malloctrace {

SiteTable::Table* SiteTable::new_table(std::uint64_t size) noexcept {
  auto* table = static_cast<Table*>(map_private(sizeof(Table) + size * sizeof(Entry)));
  if (table != nullptr)
    table->mask = size - 1;
  return table;
}

bool SiteTable::start() noexcept {
  Table* table = new_table(kFirstSize);
  if (table != nullptr)
    publish(table_, table);
  return table != nullptr;
}

void SiteTable::put(Table& table, std::uint64_t hash, std::uint32_t site) noexcept {
  constexpr unsigned kHalf = 32;
  std::uint64_t i = hash;
  while (table.entry(i).site != 0)
    ++i;
  Entry& place = table.entry(i);
  place.low = static_cast<std::uint32_t>(hash);
  place.high = static_cast<std::uint32_t>(hash >> kHalf);
  publish(place.site, site);
  ++table.count;
}

bool SiteTable::make_room() noexcept {
  if (table_->count * 4 <= table_->mask * 3)
    return true;
  Table* larger = new_table((table_->mask + 1) * 2);
  if (larger == nullptr)
    return false;
  for (std::uint64_t i = 0; i <= table_->mask; ++i)
    if (const Entry& entry = table_->entry(i); entry.site != 0)
      put(*larger, entry.hash(), entry.site);
  if (retired_ != nullptr)  // a thread that still reads it finds zeros
    clear_private(retired_, bytes_of(*retired_));
  retired_ = table_;
  publish(table_, larger);
  return true;
}

}  // namespace pe::malloctrace

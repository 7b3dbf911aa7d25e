// SPDX-License-Identifier: MIT
#include "malloctrace/preload/site_table.h"

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

void SiteTable::put(Table& table, const Entry& entry) noexcept {
  std::uint64_t i = entry.hash;
  while (table.entry(i).site != 0)
    ++i;
  Entry& place = table.entry(i);
  place.hash = entry.hash;
  place.depth = entry.depth;
  publish(place.site, entry.site);
  ++table.count;
}

bool SiteTable::insert(StackHash stack, std::uint32_t depth, std::uint32_t site) noexcept {
  if (table_->count * 3 > table_->mask * 2) {
    Table* larger = new_table((table_->mask + 1) * 2);
    if (larger == nullptr)
      return false;
    for (std::uint64_t i = 0; i <= table_->mask; ++i)
      if (table_->entry(i).site != 0)
        put(*larger, table_->entry(i));
    if (retired_ != nullptr)  // whoever still looks at it finds zeros
      clear_private(retired_, bytes_of(*retired_));
    retired_ = table_;
    publish(table_, larger);
  }
  put(*table_, {stack.bits(), depth, site});
  return true;
}

}  // namespace pe::malloctrace

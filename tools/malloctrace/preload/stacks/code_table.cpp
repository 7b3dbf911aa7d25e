// SPDX-License-Identifier: MIT
#include "malloctrace/preload/stacks/code_table.h"

#include <utility>

namespace pe::malloctrace {

CodeTable::Table* CodeTable::new_table(std::uint64_t size) noexcept {
  auto* table = static_cast<Table*>(map_private(sizeof(Table) + size * sizeof(KnownCode)));
  if (table != nullptr)
    table->mask = size - 1;
  return table;
}

/// Reuses the retired table if the size is the same: unloading code does not change it.
CodeTable::Table* CodeTable::next_table(std::uint64_t size) noexcept {
  if (retired_ == nullptr || retired_->mask + 1 != size)
    return new_table(size);
  Table* table = std::exchange(retired_, nullptr);
  clear_private(table, bytes_of(*table));
  table->mask = size - 1;
  return table;
}

CodeTable::Table* CodeTable::make_table(std::uint64_t size) noexcept {
  Table* table = new_table(size);
  if (table != nullptr)
    publish(table_, table);
  return table;
}

KnownCode* CodeTable::put(Table& table, const KnownCode& code) noexcept {
  std::uint64_t i = place(code.key);
  while (table.entry(i).key.bits() != 0)
    ++i;
  KnownCode& entry = table.entry(i);
  entry.rule = code.rule;
  entry.number = code.number;
  publish(reinterpret_cast<std::uint64_t&>(entry.key), code.key.bits());
  ++table.count;
  return &entry;
}

/// A thread that still reads an older table finds zeros: only its pages are given back.
void CodeTable::replace(Table* table) noexcept {
  if (retired_ != nullptr)
    clear_private(retired_, bytes_of(*retired_));
  retired_ = table_;
  publish(table_, table);
}

const KnownCode* CodeTable::insert(const KnownCode& code) noexcept {
  if (table_->count * 4 > table_->mask * 3) {
    Table* larger = next_table((table_->mask + 1) * 2);
    if (larger == nullptr)
      return nullptr;
    for (std::uint64_t i = 0; i <= table_->mask; ++i)
      if (table_->entry(i).key.bits() != 0)
        put(*larger, table_->entry(i));
    replace(larger);
  }
  return put(*table_, code);
}

}  // namespace pe::malloctrace

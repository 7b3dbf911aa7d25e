// Where the tables of layout.h are written: the kernel's maps, or a test's memory.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <span>

#include "unwind/kernel/layout.h"

namespace pe::unwind {

class TableStore {
 public:
  TableStore() = default;
  TableStore(const TableStore&) = delete;
  TableStore& operator=(const TableStore&) = delete;
  TableStore(TableStore&&) = delete;
  TableStore& operator=(TableStore&&) = delete;
  virtual ~TableStore() = default;

  /// kChunkWords words, zero at first, seen by the kernel; made when it is first asked for.
  /// `number` < kMaxChunks.  Lives as long as the store.  Throws Error if there is no memory.
  virtual std::span<std::uint32_t> chunk(std::uint32_t number) = 0;
  /// kMaxRules entries, likewise.
  virtual std::span<RuleEntry> rules() = 0;
  /// Replaces what the kernel knows of a process; false if there are kMaxProcesses already.
  virtual bool set_process(std::uint32_t tgid, const ProcessMappings& mappings) = 0;
  /// Nothing happens if it is not known.
  virtual void forget_process(std::uint32_t tgid) = 0;
};

}  // namespace pe::unwind

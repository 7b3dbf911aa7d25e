// Holds the tables of layout.h: in the kernel's maps, or in a test's memory.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <span>

#include "recording/bpf/layout.h"

namespace pe::unwind {

class TableStore {
 public:
  TableStore() = default;
  TableStore(const TableStore&) = delete;
  TableStore& operator=(const TableStore&) = delete;
  TableStore(TableStore&&) = delete;
  TableStore& operator=(TableStore&&) = delete;
  virtual ~TableStore() = default;

  /// Returns kChunkWords words, initially zero, which the kernel sees.  The first call for a
  /// `number` < kMaxChunks creates them.  They live as long as the store.  Throws Error if there is
  /// no memory.
  virtual std::span<std::uint32_t> chunk(std::uint32_t number) = 0;
  /// Returns kMaxRules entries, likewise.
  virtual std::span<RuleEntry> rules() = 0;
  /// Replaces the kernel's data about a process; false if there are kMaxProcesses already.
  virtual bool set_process(std::uint32_t tgid, const ProcessMappings& mappings) = 0;
  /// Does nothing if the process is not known.
  virtual void forget_process(std::uint32_t tgid) = 0;
};

}  // namespace pe::unwind

// What the records of a stream, in order of time, do to processes.
//
// Joins perf (what a record says) and proc (what that means for a process), so that whoever reads
// samples, from a file or from the kernel's rings, sees the same history.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>

#include "stream/proc/process_table.h"
#include "stream/records/sample.h"

namespace pe::stream {

/// A change to a process's mappings: what was found out about addresses in [start, end) of `pid`
/// holds no longer.
struct MappingChange {
  std::uint32_t pid = 0;
  std::uint64_t start = 0, end = 0;    ///< avma
  const MappedFile* mapped = nullptr;  ///< null: another program (exec), or a new process
  std::uint32_t forked_from = 0;       ///< of a new process: its parent's pid
};

class History {
 public:
  /// Takes in a record's effect; those of other types have none.  false if it is malformed.
  bool apply(const Record& record);

  [[nodiscard]] const ProcessTable& processes() const noexcept { return processes_; }
  /// What the last record changed.
  [[nodiscard]] const std::optional<MappingChange>& mapping_change() const noexcept {
    return change_;
  }
  /// The thread that the last record said has ended.
  [[nodiscard]] const std::optional<TaskRecord>& ended_thread() const noexcept { return ended_; }
  /// The kernel's mapping as recorded ("[kernel.kallsyms]_text"): its first address, 0 if none was.
  [[nodiscard]] std::uint64_t kernel_start() const noexcept { return kernel_start_; }

 private:
  bool apply_mmap(const Record& record);
  bool apply_comm(const Record& record);
  bool apply_fork(const Record& record);
  bool apply_build_id(const Record& record);

  ProcessTable processes_;
  std::unordered_map<std::string, std::string>
      build_ids_;  ///< by path; empty: of several files of that path
  std::optional<MappingChange> change_;
  std::optional<TaskRecord> ended_;
  std::uint64_t kernel_start_ = 0;
};

}  // namespace pe::stream

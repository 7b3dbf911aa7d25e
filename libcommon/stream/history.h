// Applies the records of a stream, in order of time, to processes.
//
// It joins records/ (parsing of a record) and proc/ (its effect on a process).  So all code that
// reads samples, from a file or from the kernel's rings, sees the same history.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>

#include "stream/proc/process_table.h"
#include "stream/records/sample.h"

namespace pe::stream {

/// A change to a process's mappings: earlier results for addresses in [start, end) of `pid` are no
/// longer valid.
struct MappingChange {
  std::uint32_t pid = 0;
  std::uint64_t start = 0, end = 0;    ///< avma
  const MappedFile* mapped = nullptr;  ///< null: another program (exec), or a new process
  std::uint32_t forked_from = 0;       ///< the parent's pid if the process is new
};

class History {
 public:
  /// Applies a record; records of other types have no effect.  Returns false if it is malformed.
  bool apply(const Record& record);

  /// The process has ended: forgets its mappings, as if it had started another program.
  void forget(std::uint32_t pid);

  [[nodiscard]] const ProcessTable& processes() const noexcept { return processes_; }
  /// Returns the change that the last record made.
  [[nodiscard]] const std::optional<MappingChange>& mapping_change() const noexcept {
    return change_;
  }
  /// Returns the thread whose end the last record reported.
  [[nodiscard]] const std::optional<TaskRecord>& ended_thread() const noexcept { return ended_; }
  /// Returns the first address of the recorded kernel mapping ("[kernel.kallsyms]_text"); 0 if
  /// there was none.
  [[nodiscard]] std::uint64_t kernel_start() const noexcept { return kernel_start_; }
  /// Returns the boot_number() of the recorded system; 0 if it is not recorded.
  [[nodiscard]] std::uint64_t boot() const noexcept { return boot_; }

 private:
  bool apply_mmap(const Record& record);
  bool apply_comm(const Record& record);
  bool apply_fork(const Record& record);
  bool apply_build_id(const Record& record);

  ProcessTable processes_;
  std::unordered_map<std::string, std::string>
      build_ids_;  ///< by path; empty if several files have that path
  std::optional<MappingChange> change_;
  std::optional<TaskRecord> ended_;
  std::uint64_t kernel_start_ = 0;
  std::uint64_t boot_ = 0;
};

}  // namespace pe::stream

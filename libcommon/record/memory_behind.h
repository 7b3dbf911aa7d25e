// Reads the process memory that follows a sample's copy of the stack, while the sample is new.
//
// If a copy is too short for its stack, the unwinder continues in this memory.  This works until
// the process has returned so far that the copy's outer end has changed.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "record/memory_budget.h"
#include "stream/held_records.h"
#include "unwind/stacks/sample_unwinder.h"

namespace pe::record {

class MemoryBehind {
 public:
  /// Returns the memory after the copy of a sample that has just arrived.  It is empty if
  /// `unwinder` does not need it, the budget is used up, or the process has changed the copy's end.
  /// Valid until the next call.
  unwind::Behind read(const stream::Sample& sample, const perf_event_attr& attr,
                      unwind::SampleUnwinder& unwinder);

  /// Copies code of a process, like unwind::CodeSource.
  std::size_t read_code(std::uint32_t pid, std::uint64_t avma, std::span<std::byte> into);

  [[nodiscard]] const MemoryBudget& budget() const noexcept { return budget_; }

 private:
  MemoryBudget budget_;
  std::vector<std::byte> memory_;
};

/// Holds the memory as a record until its sample is written; KeptBehind reads that record.
void hold(const unwind::Behind& behind, std::uint64_t time_ns, stream::HeldRecords& held);

/// Returns the same record, which must be written right before its sample.  Valid while `into` is
/// unchanged.
stream::Record behind_record(const unwind::Behind& behind, std::vector<std::byte>& into);

/// The memory that was held right before a sample, for use with that sample.
class KeptBehind {
 public:
  /// Returns false if the record is not such a record.
  bool take(const stream::Record& record);
  [[nodiscard]] unwind::Behind view() const noexcept { return {bytes_, agreed_}; }
  void forget() noexcept { bytes_.clear(); }

 private:
  std::vector<std::byte> bytes_;
  std::size_t agreed_ = 0;
};

}  // namespace pe::record

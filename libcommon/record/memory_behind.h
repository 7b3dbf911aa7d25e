// What follows a sample's copy of the stack in its process, read while the sample is new.
//
// A copy that is too short for its stack can be continued from there, if the process has not yet
// returned so far that the copy's own outer end has changed.
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
  /// For a sample that has just come: what follows its copy, if `unwinder` may need it and the end
  /// of the copy still stands there.  Empty if not.  Lives until the next call.
  unwind::Behind read(const stream::Sample& sample, const perf_event_attr& attr,
                      unwind::SampleUnwinder& unwinder);

  /// Copies code of a process, as unwind::CodeSource.
  std::size_t read_code(std::uint32_t pid, std::uint64_t avma, std::span<std::byte> into);

  [[nodiscard]] const MemoryBudget& budget() const noexcept { return budget_; }

 private:
  MemoryBudget budget_;
  std::vector<std::byte> memory_;
};

/// Keeps it for its sample, until that is its turn; read again by KeptBehind.
void hold(const unwind::Behind& behind, std::uint64_t time_ns, stream::HeldRecords& held);

/// The same record, to be written right before its sample.  Lives as long as `into` is unchanged.
stream::Record behind_record(const unwind::Behind& behind, std::vector<std::byte>& into);

/// What was held right before a sample, to be used with it.
class KeptBehind {
 public:
  /// false if the record is none of hold().
  bool take(const stream::Record& record);
  [[nodiscard]] unwind::Behind view() const noexcept { return {bytes_, agreed_}; }
  void forget() noexcept { bytes_.clear(); }

 private:
  std::vector<std::byte> bytes_;
  std::size_t agreed_ = 0;
};

}  // namespace pe::record

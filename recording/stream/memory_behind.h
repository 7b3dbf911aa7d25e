// Reads the process memory that follows a sample's copy of the stack, while the sample is new.
//
// If a copy is too short for its stack, the unwinder continues in this memory.  This works until
// the process has returned so far that the copy's outer end has changed.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <optional>
#include <span>
#include <vector>

#include "base/budget.h"
#include "stream/proc/memory.h"
#include "stream/records/sample.h"
#include "unwind/stacks/sample_unwinder.h"

namespace pe::recording {

class MemoryBehind {
 public:
  /// Each process pays from `budget`, which must outlive this.
  explicit MemoryBehind(Budget& budget) : budget_(budget), reader_(budget) {}

  /// Returns the memory after the copy of a sample that has just arrived.  It is empty if
  /// `unwinder` does not need it, the process cannot pay for it, or has changed the copy's end.
  /// Valid until the next call.
  unwind::Behind read(const stream::Sample& sample, const perf_event_attr& attr,
                      unwind::SampleUnwinder& unwinder);

  /// Copies code of a process, like unwind::CodeSource.
  std::size_t read_code(std::uint32_t pid, std::uint64_t avma, std::span<std::byte> into);

 private:
  bool may_read(std::uint32_t pid, Resource resource, std::size_t bytes);
  bool may_read_behind(std::uint32_t pid, std::size_t bytes);

  Budget& budget_;
  stream::MemoryReader reader_;
  std::vector<std::byte> memory_;
  std::size_t rest_bytes_ = std::size_t{8} << 20;  ///< may be read once the recording has ended
};

/// Calls `on_record` with the pieces of records that contain the memory.  They are internal: they
/// come right before their sample, and KeptBehind reads them.  There is at least one, also for no
/// memory.
void make_behind_records(const unwind::Behind& behind, std::uint64_t time_ns,
                         const std::function<void(std::initializer_list<Bytes>)>& on_record);
/// Returns the time of such a record; nullopt for any other record.
std::optional<std::uint64_t> time_of_behind(const stream::Record& record);

/// The memory that came right before a sample, for use with that sample.
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

}  // namespace pe::recording

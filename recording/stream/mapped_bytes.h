// Limits what the mappings of recorded processes cost: memory, and time to copy them at forks.
//
// The kernel reports neither that memory is unmapped nor that the last thread of a process has
// ended.  So a process's mappings are forgotten a second after its first thread has ended, unless
// the process still exists.  Names of files stay.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <unordered_map>

#include "base/budget.h"
#include "stream/history.h"
#include "stream/records/record.h"

namespace pe::recording {

class MappedBytes {
 public:
  /// `budget` and `history` must outlive this.
  MappedBytes(Budget& budget, stream::History& history) : budget_(budget), history_(history) {}

  /// Returns whether the process of the record can pay for it.  All but mappings of code are free.
  bool may_apply(const stream::Record& record);
  /// Applies the record to the history.
  void apply(const stream::Record& record, std::uint64_t time_ns);
  /// Makes the history forget a process that has ended long enough before `time_ns`, and returns
  /// true.  To be called until it returns false.
  bool forget_ended(std::uint64_t time_ns);

 private:
  [[nodiscard]] std::size_t mappings_of(std::uint32_t pid) const;

  struct Ended {
    std::uint32_t pid;
    std::uint64_t time_ns;
  };
  Budget& budget_;
  stream::History& history_;
  std::unordered_map<std::uint32_t, KeptBytes> kept_;  ///< by pid
  std::deque<Ended> ended_;                            ///< those in kept_, in order of time
};

}  // namespace pe::recording

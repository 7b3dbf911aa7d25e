// Adds the counts of threads to the sites' totals, and records the process's peak.
//
// Sites are locked by stripes while their totals change.
// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstdint>

#include "malloctrace/preload/memory/shared_memory.h"
#include "malloctrace/preload/memory/spin_lock.h"

namespace pe::malloctrace {

/// To be called before totals change: their present values are those at the peak.
template <typename T>
void keep_peak(T& totals, std::uint32_t version) noexcept {
  if (totals.version != version) [[unlikely]] {
    totals.peak_bytes = totals.live_bytes;
    totals.version = version;
  }
}

class Ledger {
 public:
  void start(SharedMemory shared) noexcept { shared_ = shared; }

  /// Adds `sum` to its site's totals and clears it.  Only for the thread that owns `sum`.
  void add(heap::ThreadSum& sum) noexcept;
  /// The process holds `live_bytes`, apparently more than ever, and is about to hold less.
  void note_peak(std::int64_t live_bytes) noexcept;
  /// From now on there is more than one thread.
  void begin_threads() noexcept;
  /// Adds bytes that a thread has not reported yet.  Returns the slack: how far off the thread may
  /// be until its next report.
  std::int64_t settle(std::int64_t bytes) noexcept;

 private:
  static constexpr std::size_t kStripes = 256;

  void store(std::uint32_t site, const heap::Totals& totals) noexcept;

  SharedMemory shared_;
  std::array<SpinLock, kStripes> stripes_;
  SpinLock peak_lock_, wide_lock_;
};

/// Returns the totals of a site, narrow or wide.  The caller holds its stripe's lock, or no thread
/// writes.
heap::Totals totals_of(SharedMemory shared, std::uint32_t site) noexcept;

}  // namespace pe::malloctrace

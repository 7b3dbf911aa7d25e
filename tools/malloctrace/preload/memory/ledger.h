// Adds what threads have counted to the sites' totals, and notes the process's peak.
//
// Sites are locked by stripes while their totals change.
// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstdint>

#include "malloctrace/preload/memory/shared_memory.h"
#include "malloctrace/preload/memory/spin_lock.h"

namespace pe::malloctrace {

/// To be called before anything changes in totals: what they hold is what they held at the peak.
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

  /// Adds `sum` to its site's totals; then it is of no site.  For the thread whose sum it is.
  void add(heap::ThreadSum& sum) noexcept;
  /// The process holds `live_bytes`, more than ever it seems, and is about to hold less.
  void note_peak(std::int64_t live_bytes) noexcept;
  /// From now on there is more than one thread.
  void begin_threads() noexcept;
  /// A thread tells what it had kept to itself, and how far off it may be until the next time; how
  /// much that may be.
  std::int64_t settle(std::int64_t bytes) noexcept;

 private:
  static constexpr std::size_t kStripes = 256;

  void store(std::uint32_t site, const heap::Totals& totals) noexcept;

  SharedMemory shared_;
  std::array<SpinLock, kStripes> stripes_;
  SpinLock peak_lock_, wide_lock_;
};

/// The totals of a site, narrow or wide.  Under its stripe's lock, or where nobody writes.
heap::Totals totals_of(SharedMemory shared, std::uint32_t site) noexcept;

}  // namespace pe::malloctrace

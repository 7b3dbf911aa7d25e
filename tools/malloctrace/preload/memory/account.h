// The allocations and frees of one thread by site: its ThreadSums in the shared memory.
//
// With one thread everything is exact, including the peak.  With several, a thread reports its live
// bytes to the others once they exceed a slack, so a peak may be off by that slack.
// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "malloctrace/preload/memory/shared_memory.h"
#include "malloctrace/preload/memory/spin_lock.h"

namespace pe::malloctrace {

// Adds the counts of threads to the sites' totals, and records the process's peak.
//
// Sites are locked by stripes while their totals change.

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

/// The weight of a block, or of a sample that represents many blocks.
struct Weight {
  std::uint64_t bytes, count;
};

class Account {
 public:
  /// The thread's sums are in slot `slot`, and all zero.
  void open(SharedMemory shared, std::uint32_t slot, Ledger& ledger) noexcept {
    header_ = &shared.header();
    sums_ = &shared.threads()[slot];
    ledger_ = &ledger;
    is_first_ = slot == 0;
    slack_ = -1;
    last_tick_ = 0;
  }

  void allocate(std::uint32_t site, Weight weight) noexcept {
    heap::ThreadSum& sum = sum_of(site);
    const std::uint32_t tick = load_relaxed(header_->tick);
    keep_peak(sum, load_relaxed(header_->peak_version));
    if (sum.allocated_count == 0)
      sum.first_tick = tick;
    sum.last_tick = tick;
    if (last_tick_ != tick) [[unlikely]]
      store_relaxed(header_->last_tick, last_tick_ = tick);
    sum.allocated_bytes += weight.bytes;
    sum.allocated_count += weight.count;
    add_live(sum, static_cast<std::int64_t>(weight.bytes), static_cast<std::int64_t>(weight.count));
  }

  void free(std::uint32_t site, Weight weight, bool is_temporary) noexcept {
    heap::ThreadSum& sum = sum_of(site);
    const std::int64_t live = known_live_bytes();
    if (live > load_relaxed(header_->peak_bytes)) [[unlikely]]
      ledger_->note_peak(live);
    keep_peak(sum, load_relaxed(header_->peak_version));
    sum.temporary_count += is_temporary ? weight.count : 0;
    add_live(sum, -static_cast<std::int64_t>(weight.bytes),
             -static_cast<std::int64_t>(weight.count));
  }

  /// Adds everything to the sites' totals: as far as we know, the thread ends.
  void close() noexcept {
    for (heap::ThreadSum& sum : sums_->sums)
      ledger_->add(sum);
    tell();
  }

 private:
  [[nodiscard]] std::int64_t known_live_bytes() const noexcept {
    const std::int64_t told = __atomic_load_n(&header_->live_bytes, __ATOMIC_ACQUIRE);
    const std::int64_t alone = is_first_ ? 0 : load_relaxed(header_->alone_bytes);
    return told + sums_->live_bytes + std::max<std::int64_t>(alone, 0);
  }

  /// Removes the bytes from this thread's sum before it adds them to the header.  For a moment they
  /// may be missing; if they counted twice, a peak that never was would remain.
  void tell() noexcept {
    const std::int64_t bytes = sums_->live_bytes;
    store_relaxed(sums_->live_bytes, std::int64_t{0});
    if (is_first_)
      store_relaxed(header_->alone_bytes, std::int64_t{-1});
    slack_ = ledger_->settle(bytes);
  }

  heap::ThreadSum& sum_of(std::uint32_t site) noexcept {
    heap::ThreadSum& sum = sums_->sums[site % heap::kSumsOfThread];
    if (sum.site != site) [[unlikely]] {
      ledger_->add(sum);
      sum.version = load_relaxed(header_->peak_version);
      publish(sum.site, site);
    }
    return sum;
  }

  void add_live(heap::ThreadSum& sum, std::int64_t bytes, std::int64_t count) noexcept {
    sum.live_bytes += bytes;
    sum.live_count += count;
    sums_->live_bytes += bytes;
    if (load_relaxed(header_->has_threads) != 0 &&
        (sums_->live_bytes > slack_ || sums_->live_bytes < -slack_))
      tell();
  }

  heap::Header* header_;
  heap::ThreadSums* sums_;
  Ledger* ledger_;
  std::int64_t slack_;       ///< below 0: any live bytes must be reported
  std::uint32_t last_tick_;  ///< tick of this thread's last allocation
  bool is_first_;
};

}  // namespace pe::malloctrace

// The allocations and frees of one thread by site: its ThreadSums in the shared memory.
//
// With one thread everything is exact, including the peak.  With several, a thread reports its live
// bytes to the others once they exceed a slack, so a peak may be off by that slack.
// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstdint>

#include "malloctrace/preload/memory/ledger.h"

namespace pe::malloctrace {

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

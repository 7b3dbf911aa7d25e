// SPDX-License-Identifier: MIT
#include "malloctrace/preload/memory/account.h"

#include <algorithm>
#include <mutex>

namespace pe::malloctrace {
namespace {

/// Both have the same version.
void add_to(heap::Totals& totals, const heap::ThreadSum& sum) noexcept {
  if (sum.allocated_count != 0) {
    const bool is_first = totals.allocated_count == 0;
    totals.first_tick = is_first ? sum.first_tick : std::min(totals.first_tick, sum.first_tick);
    totals.last_tick = is_first ? sum.last_tick : std::max(totals.last_tick, sum.last_tick);
  }
  totals.allocated_bytes += sum.allocated_bytes;
  totals.allocated_count += sum.allocated_count;
  totals.live_bytes += sum.live_bytes;
  totals.live_count += sum.live_count;
  totals.temporary_count += sum.temporary_count;
  totals.peak_bytes += sum.peak_bytes;
}

}  // namespace

heap::Totals totals_of(SharedMemory shared, std::uint32_t site) noexcept {
  const heap::SiteTotals& narrow = shared.sites()[site];
  return narrow.is_wide != 0 ? shared.wides()[narrow.bytes] : heap::widened(narrow);
}

void Ledger::store(std::uint32_t site, const heap::Totals& totals) noexcept {
  heap::SiteTotals& narrow = shared_.sites()[site];
  if (narrow.is_wide != 0) {
    shared_.wides()[narrow.bytes] = totals;
  } else if (!heap::narrow_down(totals, narrow)) {
    const std::lock_guard guard(wide_lock_);
    heap::Header& header = shared_.header();
    if (header.wides + 1 >= heap::kMaxWides ||
        !shared_.open<heap::WideTotals>(Section::kWides, std::uint64_t{header.wides} + 2)) {
      count_up(header.full);  // the site keeps its old totals
      return;
    }
    shared_.wides()[header.wides + 1] = totals;
    publish(header.wides, header.wides + 1);
    heap::SiteTotals moved{};
    moved.is_wide = 1;
    moved.bytes = header.wides;
    narrow = moved;
  }
}

void Ledger::add(heap::ThreadSum& sum) noexcept {
  const std::uint32_t site = sum.site;
  if (site == 0)
    return;
  const std::lock_guard guard(stripes_[site % kStripes]);
  heap::Totals totals = totals_of(shared_, site);
  const std::uint32_t version = load_relaxed(shared_.header().peak_version);
  keep_peak(totals, version);
  keep_peak(sum, version);
  add_to(totals, sum);
  store(site, totals);
  sum = {};
}

void Ledger::note_peak(std::int64_t live_bytes) noexcept {
  const std::lock_guard guard(peak_lock_);
  heap::Header& header = shared_.header();
  if (live_bytes <= header.peak_bytes)
    return;
  store_relaxed(header.peak_bytes, live_bytes);
  store_relaxed(header.peak_tick, load_relaxed(header.last_tick));
  publish(header.peak_version, header.peak_version + 1);
}

/// The first thread may report its bytes at this moment; they are not recorded here in that case.
/// has_threads must be visible before its bytes are read.  An exchange is also a fence, and one
/// that the thread sanitizer knows.
void Ledger::begin_threads() noexcept {
  heap::Header& header = shared_.header();
  if (header.has_threads != 0)
    return;
  __atomic_exchange_n(&header.has_threads, 1U, __ATOMIC_SEQ_CST);
  std::int64_t nothing = 0;
  __atomic_compare_exchange_n(&header.alone_bytes, &nothing,
                              load_relaxed(shared_.threads()[0].live_bytes), false,
                              __ATOMIC_RELAXED, __ATOMIC_RELAXED);
}

std::int64_t Ledger::settle(std::int64_t bytes) noexcept {
  constexpr std::int64_t kLeast = 4096;
  constexpr std::int64_t kPart = 4096;
  heap::Header& header = shared_.header();
  const std::int64_t live = __atomic_add_fetch(&header.live_bytes, bytes, __ATOMIC_RELEASE);
  const std::int64_t threads = std::max<std::int64_t>(load_relaxed(header.threads), 1);
  const std::int64_t slack = std::max(kLeast, live / kPart / threads);
  const auto off = static_cast<std::uint64_t>(slack * threads);
  if (off > load_relaxed(header.slack_bytes))
    store_relaxed(header.slack_bytes, off);
  return slack;
}

}  // namespace pe::malloctrace

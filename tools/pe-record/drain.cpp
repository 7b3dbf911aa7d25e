// SPDX-License-Identifier: MIT
#include "pe-record/drain.h"

#include <algorithm>
#include <ctime>
#include <limits>

namespace pe::record {

std::uint64_t monotonic_ns() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  constexpr std::uint64_t kSecond = 1'000'000'000;
  return static_cast<std::uint64_t>(now.tv_sec) * kSecond + static_cast<std::uint64_t>(now.tv_nsec);
}

void Drain::pass(std::vector<perf::Ring>& rings) {
  const std::uint64_t began_ns = monotonic_ns();
  take(rings);
  write_until(last_pass_began_ns_);
  last_pass_began_ns_ = began_ns;
}

void Drain::finish(std::vector<perf::Ring>& rings) {
  take(rings);
  write_until(std::numeric_limits<std::uint64_t>::max());
  writer_.write_finished_round();
  writer_.flush();
}

void Drain::take(std::vector<perf::Ring>& rings) {
  for (perf::Ring& ring : rings)
    ring.drain([this](const perf::Record& record) {
      count(record);
      pending_.push_back({perf::time_of(record, attr_), bytes_.size(), record.bytes.size()});
      bytes_.insert(bytes_.end(), record.bytes.begin(), record.bytes.end());
    });
}

void Drain::count(const perf::Record& record) {
  switch (record.type) {
    case PERF_RECORD_SAMPLE:
      ++passed_.samples;
      if (const auto sample = perf::parse_sample(record, attr_))
        passed_.threads.insert(sample->tid);
      break;
    case PERF_RECORD_LOST:
    case PERF_RECORD_LOST_SAMPLES:
      passed_.lost += perf::parse_lost(record).value_or(0);
      break;
    case PERF_RECORD_THROTTLE:
      ++passed_.throttled;
      break;
    default:
      break;
  }
}

void Drain::write_until(std::uint64_t time_ns) {
  const auto older = [](const Pending& a, const Pending& b) { return a.time_ns < b.time_ns; };
  std::stable_sort(pending_.begin(), pending_.end(), older);
  const auto end = std::upper_bound(
      pending_.begin(), pending_.end(), time_ns,
      [](std::uint64_t time, const Pending& pending) { return time < pending.time_ns; });
  if (end == pending_.begin())
    return;
  // A round is closed when the next one begins, so that a stream whose recorder was
  // killed does not end as a whole one does.
  if (round_is_open_)
    writer_.write_finished_round();
  round_is_open_ = true;
  for (auto it = pending_.begin(); it != end; ++it)
    writer_.write(Bytes(bytes_).subspan(it->offset, it->size));
  writer_.flush();
  std::vector<std::byte> kept;
  pending_.erase(pending_.begin(), end);
  for (Pending& pending : pending_) {
    const Bytes bytes = Bytes(bytes_).subspan(pending.offset, pending.size);
    pending.offset = kept.size();
    kept.insert(kept.end(), bytes.begin(), bytes.end());
  }
  bytes_ = std::move(kept);
}

}  // namespace pe::record

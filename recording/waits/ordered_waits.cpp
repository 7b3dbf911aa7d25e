// SPDX-License-Identifier: MIT
#include "recording/waits/ordered_waits.h"

#include <limits>

#include "base/sort_in_steps.h"
#include "stream/records/sample.h"

namespace pe::waits {

void OrderedWaits::hold_parts(const LateWait& wait, const unwind::Sum& sum,
                              std::uint64_t silence_event) {
  std::uint64_t count = wait.count;
  const bool is_single = wait.count == 1;
  const auto hold_part = [&](std::uint64_t ns, std::uint64_t kind, std::uint64_t event) {
    if (ns == 0)
      return;
    LateWait part = wait;
    part.length_ns = ns;
    part.count = event == 0 ? std::exchange(count, 0) : 0;
    part.weight = kind;
    part.event = event;
    if (is_single && kind != unwind::kWaitReady)  // the thread was woken then
      part.end_ns -= std::min(part.end_ns, sum.ready_ns);
    if (kind == unwind::kWaitReady) {  // neither the lock nor who woke it had to do with that
      part.wakers.clear();
      part.lock = 0;
    }
    hold(std::move(part));
  };
  const auto hold_both = [&](std::uint64_t ns, std::uint64_t ready_ns, std::uint64_t event) {
    hold_part(ns - std::min(ns, ready_ns), wait.weight, event);
    hold_part(std::min(ns, ready_ns), unwind::kWaitReady, event);
  };
  hold_both(sum.ns, sum.ready_ns, 0);
  if (silence_event != 0)
    hold_both(sum.silent_ns, sum.silent_ready_ns, silence_event);
}

void OrderedWaits::write_until(std::uint64_t until_ns) {
  write_older(until_ns);
  waits_.reach(until_ns);
}

void OrderedWaits::finish(std::uint64_t stopped_ns) {
  write_older(std::numeric_limits<std::uint64_t>::max());
  thinned_.finish();
  waits_.flush(stopped_ns);
}

void OrderedWaits::write_whole(std::uint64_t event, std::uint64_t began_ns, std::uint64_t ended_ns,
                               std::uint64_t stopped_ns) {
  began_ns = std::max(began_ns, begun_ns_);
  if (!has_begun_ || ended_ns <= began_ns)
    return;
  const Stack nowhere{.misc = PERF_RECORD_MISC_USER};
  waits_.write_sample({.pid = 0,
                       .tid = 0,
                       .end_ns = stopped_ns,
                       .length_ns = ended_ns - began_ns,
                       .stack = nowhere,
                       .event = event});
}

void OrderedWaits::write_older(std::uint64_t until_ns) {
  const auto is_before = [](const LateWait& a, const LateWait& b) {
    return a.end_ns != b.end_ns ? a.end_ns < b.end_ns : a.tid < b.tid;
  };
  sort_in_steps(late_, is_before, [this] {
    look_();
    return true;
  });
  constexpr std::size_t kOfTurn = 256;
  std::size_t done = 0;
  const auto write_waits = [&](std::uint64_t to_ns) {
    for (; done < late_.size() && late_[done].end_ns < to_ns; ++done) {
      if (done % kOfTurn == 0)
        look_();
      write_wait(late_[done]);
    }
  };
  records_.make_ready(until_ns);
  while (const auto next = records_.next()) {
    write_waits(next->time_ns);
    write_record(next->time_ns, next->record);
  }
  write_waits(until_ns);
  late_.erase(late_.begin(), late_.begin() + static_cast<std::ptrdiff_t>(done));
  written_until_ns_ = until_ns;
}

void OrderedWaits::write_record(std::uint64_t time_ns, const stream::Record& record) {
  waits_.flush(time_ns);
  last_ns_ = std::max(last_ns_, time_ns);
  thinned_.follow(record);
  if (record.type == PERF_RECORD_COMM) {
    const auto comm = stream::parse_comm(record);
    if (!has_begun_ && comm && comm->is_exec && comm->pid == command_) {
      has_begun_ = true;
      begun_ns_ = time_ns;
    }
  }
  writer_.write(record.bytes);
}

void OrderedWaits::write_wait(const LateWait& late) {
  if (!has_begun_)
    return;
  last_ns_ = late.end_ns;
  if (late.is_sample)
    return write_samples(late);
  const Wait wait{late.pid,           late.tid,    late.end_ns, late.length_ns, late.stack,
                  late.is_unfinished, late.wakers, late.lock,   late.weight,    late.event};
  if (late.event != 0)  // a part of waits
    return waits_.add(wait);
  counts_.waits += late.count;
  counts_.total_ns += late.length_ns;
  if (late.weight < counts_.kind_ns.size())
    counts_.kind_ns.at(static_cast<std::size_t>(late.weight)) += late.length_ns;
  counts_.unfinished += late.is_unfinished ? 1 : 0;
  if (!late.wakers.empty() && late.wakers.front().pid == 0) {
    counts_.timeouts += late.wakers.front().tid == stream::kEndedByTimeout ? late.count : 0;
    counts_.signals += late.wakers.front().tid == stream::kEndedBySignal ? late.count : 0;
  }
  waits_.add(wait);
}

/// Writes a sample, and those that have its stack.
void OrderedWaits::write_samples(const LateWait& late) {
  if (late.is_thinned)
    return thinned_.add({late.pid, late.tid, late.event}, late);
  write_sample(late, late.end_ns);
  for (LateWait& like : thinned_.take({late.pid, late.tid, late.event})) {
    like.stack = late.stack;
    write_sample(like, late.end_ns);
  }
}

void OrderedWaits::write_sample(const LateWait& sample, std::uint64_t time_ns) {
  counts_.samples += sample.count;
  waits_.write_sample({.pid = sample.pid,
                       .tid = sample.tid,
                       .end_ns = time_ns,
                       .length_ns = sample.length_ns,
                       .stack = sample.stack,
                       .weight = sample.weight,
                       .event = sample.event});
}

std::vector<SumIncreases::KeyedSum> SumIncreases::take(std::span<const unwind::NumberedSum> sums,
                                                       const std::function<void()>& look) {
  constexpr std::size_t kOfTurn = 1024;
  std::vector<KeyedSum> grown;
  for (std::size_t i = 0; const auto& [number, place, keyed] : sums) {
    const auto& [key, sum] = keyed;
    if (++i % kOfTurn == 0)
      look();
    if (place >= known_.size())
      known_.resize(std::max<std::size_t>(std::size_t{place} + 1, 2 * known_.size()));
    Known& known = known_[place];
    if (known.number != number)
      known = {number, {}};
    unwind::Sum& before = known.sum;
    // The kernel updates the parts of a sum one after the other: one part may be of the next
    // reading.
    if (sum.ns == before.ns && sum.silent_ns == before.silent_ns)
      continue;
    const auto growth = [](std::uint64_t now, std::uint64_t earlier) {
      return now - std::min(now, earlier);
    };
    grown.push_back({key,
                     {.ns = growth(sum.ns, before.ns),
                      .count = growth(sum.count, before.count),
                      .last_ns = sum.last_ns,
                      .ready_ns = growth(sum.ready_ns, before.ready_ns),
                      .silent_ns = growth(sum.silent_ns, before.silent_ns),
                      .silent_ready_ns = growth(sum.silent_ready_ns, before.silent_ready_ns)}});
    before = sum;
  }
  const auto is_before = [](const KeyedSum& a, const KeyedSum& b) {
    return a.sum.last_ns != b.sum.last_ns ? a.sum.last_ns < b.sum.last_ns : a.key.tid < b.key.tid;
  };
  sort_in_steps(grown, is_before, [&look] {
    look();
    return true;
  });
  return grown;
}

}  // namespace pe::waits

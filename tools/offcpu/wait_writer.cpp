// SPDX-License-Identifier: MIT
#include "offcpu/wait_writer.h"

#include <algorithm>
#include <array>
#include <span>

#include "base/hash_bytes.h"

namespace pe::offcpu {
namespace {

constexpr std::uint64_t kTogetherNs = 10'000'000;

std::uint64_t hash_of(const Wait& wait, std::uint16_t misc) {
  const std::array<std::uint64_t, 2> whose{std::uint64_t{wait.pid} << 32U | wait.tid, misc};
  const std::uint64_t hash = hash_bytes(text_of(wait.stack.chain), hash_bytes(text_of(whose)));
  if (wait.waker == nullptr)
    return hash;
  const std::array<std::uint64_t, 2> by{hash,
                                        std::uint64_t{wait.waker->pid} << 32U | wait.waker->tid};
  return hash_bytes(text_of(wait.waker->stack.chain), hash_bytes(text_of(by)));
}

}  // namespace

perf_event_attr wait_attr(const perf_event_attr& recorded) {
  perf_event_attr attr = recorded;
  attr.sample_type = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME |
                     PERF_SAMPLE_CPU | PERF_SAMPLE_PERIOD | PERF_SAMPLE_CALLCHAIN;
  attr.read_format = 0;
  return attr;
}

void WaitWriter::add(const Wait& wait) {
  reach(wait.end_ns);
  constexpr std::size_t kMostNumbers = 1U << 20U;
  if (chains_.size() > kMostNumbers)
    flush(wait.end_ns);
  if (until_ns_ == 0)
    until_ns_ = wait.end_ns + kTogetherNs;
  const std::uint16_t misc = wait.stack.misc | (wait.is_unfinished ? stream::kMiscUnfinished : 0);
  const auto [item, is_new] = index_by_hash_.try_emplace(hash_of(wait, misc), held_.size());
  if (!is_new && is_same(held_[item->second], wait, misc)) {
    held_[item->second].total_ns += wait.length_ns;
    return;
  }
  Waits waits{keep(wait.pid, wait.tid, wait.stack, misc), wait.length_ns, std::nullopt};
  if (const WokenBy* by = wait.waker; by != nullptr)
    waits.waker = keep(by->pid, by->tid, by->stack, by->stack.misc);
  held_.push_back(waits);
  if (keeps_apart_)
    flush(wait.end_ns);
}

WaitWriter::Place WaitWriter::keep(std::uint32_t pid, std::uint32_t tid, const Stack& stack,
                                   std::uint16_t misc) {
  const Place place{pid, tid, stack.cpu, misc, stack.ip, chains_.size(), stack.chain.size()};
  chains_.insert(chains_.end(), stack.chain.begin(), stack.chain.end());
  return place;
}

bool WaitWriter::is_same(const Waits& waits, const Wait& wait, std::uint16_t misc) const {
  const auto is_at = [this](const Place& place, std::uint32_t pid, std::uint32_t tid,
                            const Stack& stack) {
    const auto chain = chain_of(place);
    return place.pid == pid && place.tid == tid &&
           std::equal(chain.begin(), chain.end(), stack.chain.begin(), stack.chain.end());
  };
  const WokenBy* by = wait.waker;
  if (waits.waker.has_value() != (by != nullptr) ||
      (by != nullptr && !is_at(*waits.waker, by->pid, by->tid, by->stack)))
    return false;
  return waits.place.misc == misc && is_at(waits.place, wait.pid, wait.tid, wait.stack);
}

void WaitWriter::reach(std::uint64_t now_ns) {
  if (until_ns_ != 0 && now_ns >= until_ns_)
    flush(until_ns_);
}

void WaitWriter::flush(std::uint64_t now_ns) {
  for (const Waits& waits : held_) {
    if (waits.waker)
      write(waker_id_, *waits.waker, now_ns, waits.total_ns);
    write(id_, waits.place, now_ns, waits.total_ns);
  }
  held_.clear();
  chains_.clear();
  index_by_hash_.clear();
  until_ns_ = 0;
}

void WaitWriter::write(std::uint64_t id, const Place& place, std::uint64_t time_ns,
                       std::uint64_t period_ns) {
  builder_.begin(PERF_RECORD_SAMPLE, place.misc)
      .add(id)
      .add(place.ip)
      .add(place.pid)
      .add(place.tid)
      .add(time_ns)
      .add(place.cpu)
      .add(std::uint32_t{0})
      .add(period_ns)
      .add(std::uint64_t{place.chain_size})
      .add_bytes(text_of(chain_of(place)));
  writer_.write(std::as_bytes(std::span(builder_.finish())));
}

}  // namespace pe::offcpu

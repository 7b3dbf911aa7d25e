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
  return hash_bytes(text_of(wait.stack.chain), hash_bytes(text_of(whose)));
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
  const std::uint16_t misc = wait.stack.misc | (wait.is_unfinished ? perf::kMiscUnfinished : 0);
  const auto [item, is_new] = index_by_hash_.try_emplace(hash_of(wait, misc), held_.size());
  if (!is_new && is_same(held_[item->second], wait, misc)) {
    held_[item->second].total_ns += wait.length_ns;
    return;
  }
  held_.push_back({wait.pid, wait.tid, wait.stack.cpu, misc, wait.stack.ip, wait.length_ns,
                   chains_.size(), wait.stack.chain.size()});
  chains_.insert(chains_.end(), wait.stack.chain.begin(), wait.stack.chain.end());
}

bool WaitWriter::is_same(const Waits& waits, const Wait& wait, std::uint16_t misc) const {
  const auto chain = std::span(chains_).subspan(waits.chain_begin, waits.chain_size);
  return waits.pid == wait.pid && waits.tid == wait.tid && waits.misc == misc &&
         std::equal(chain.begin(), chain.end(), wait.stack.chain.begin(), wait.stack.chain.end());
}

void WaitWriter::reach(std::uint64_t now_ns) {
  if (until_ns_ != 0 && now_ns >= until_ns_)
    flush(until_ns_);
}

void WaitWriter::flush(std::uint64_t now_ns) {
  for (const Waits& waits : held_)
    write(waits, now_ns);
  held_.clear();
  chains_.clear();
  index_by_hash_.clear();
  until_ns_ = 0;
}

void WaitWriter::write(const Waits& waits, std::uint64_t time_ns) {
  builder_.begin(PERF_RECORD_SAMPLE, waits.misc)
      .add(id_)
      .add(waits.ip)
      .add(waits.pid)
      .add(waits.tid)
      .add(time_ns)
      .add(waits.cpu)
      .add(std::uint32_t{0})
      .add(waits.total_ns)
      .add(std::uint64_t{waits.chain_size})
      .add_bytes(text_of(std::span(chains_).subspan(waits.chain_begin, waits.chain_size)));
  writer_.write(std::as_bytes(std::span(builder_.finish())));
}

}  // namespace pe::offcpu

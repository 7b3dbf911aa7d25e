// SPDX-License-Identifier: MIT
#include "recording/waits/wait_writer.h"

#include <algorithm>
#include <array>
#include <bit>
#include <span>
#include <utility>
#include <variant>

#include "base/hash_bytes.h"
#include "stream/records/event.h"
#include "unwind/walk/frame.h"

namespace pe::waits {
namespace {

constexpr std::uint64_t kTogetherNs = 10'000'000;

std::uint64_t hash_of(const Wait& wait, std::uint16_t misc) {
  const std::array<std::uint64_t, 5> whose{std::uint64_t{wait.pid} << 32U | wait.tid, misc,
                                           wait.lock, wait.weight, wait.event};
  std::uint64_t hash = hash_bytes(text_of(wait.stack.chain), hash_bytes(text_of(whose)));
  for (const WokenBy& waker : wait.wakers) {
    const std::array<std::uint64_t, 2> by{hash, std::uint64_t{waker.pid} << 32U | waker.tid};
    hash = hash_bytes(text_of(waker.stack.chain), hash_bytes(text_of(by)));
  }
  return hash;
}

}  // namespace

perf_event_attr wait_attr(const perf_event_attr& recorded, bool with_locks, bool with_weights) {
  perf_event_attr attr = recorded;
  attr.sample_type = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME |
                     PERF_SAMPLE_CPU | PERF_SAMPLE_PERIOD | PERF_SAMPLE_CALLCHAIN;
  if (with_locks)
    attr.sample_type |= PERF_SAMPLE_ADDR;
  if (with_weights)
    attr.sample_type |= PERF_SAMPLE_WEIGHT;
  attr.read_format = 0;
  return attr;
}

void write_times(stream::StreamWriter& writer, const perf_event_attr& attr, bool with_silence) {
  const auto declare = [&](std::uint64_t id, std::string_view name) {
    writer.write_attr(attr, std::vector{id});
    writer.write_event_name(id, name);
    writer.write_event_unit(id, "ns");
  };
  declare(kCpuId, stream::kCpuEvent);
  if (with_silence)
    declare(kSilenceId, stream::kSilenceEvent);
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
  Waits waits{keep(wait.pid, wait.tid, wait.stack, misc),
              wait.length_ns,
              wait.lock,
              wait.weight,
              wait.event,
              {}};
  for (const WokenBy& by : wait.wakers)
    waits.wakers.push_back(keep(by.pid, by.tid, by.stack, by.stack.misc));
  held_.push_back(std::move(waits));
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
  const auto is_by = [&](const Place& place, const WokenBy& by) {
    return is_at(place, by.pid, by.tid, by.stack);
  };
  return waits.place.misc == misc && waits.lock == wait.lock && waits.weight == wait.weight &&
         waits.event == wait.event && is_at(waits.place, wait.pid, wait.tid, wait.stack) &&
         std::equal(waits.wakers.begin(), waits.wakers.end(), wait.wakers.begin(),
                    wait.wakers.end(), is_by);
}

void WaitWriter::reach(std::uint64_t now_ns) {
  if (until_ns_ != 0 && now_ns >= until_ns_)
    flush(until_ns_);
}

void WaitWriter::flush(std::uint64_t now_ns) {
  for (const Waits& waits : held_) {
    for (std::size_t i = waits.wakers.size(); i-- > 0;)
      write(waker_id_ + (i > 0 ? 1 : 0), waits.wakers[i],
            {0, waits.total_ns, 0, chain_of(waits.wakers[i])}, now_ns);
    write(waits.event != 0 ? waits.event : id_, waits.place,
          {waits.lock, waits.total_ns, waits.weight, chain_of(waits.place)}, now_ns);
  }
  held_.clear();
  chains_.clear();
  index_by_hash_.clear();
  until_ns_ = 0;
}

void WaitWriter::write_sample(const Wait& sample) {
  reach(sample.end_ns);
  const Stack& stack = sample.stack;
  write(sample.event, {sample.pid, sample.tid, stack.cpu, stack.misc, stack.ip, 0, 0},
        {0, sample.length_ns, sample.weight, stack.chain}, sample.end_ns);
}

void WaitWriter::write(std::uint64_t id, const Place& place, const Rest& rest,
                       std::uint64_t time_ns) {
  processes_.insert(place.pid);
  builder_.begin(PERF_RECORD_SAMPLE, place.misc)
      .add(id)
      .add(place.ip)
      .add(place.pid)
      .add(place.tid)
      .add(time_ns);
  if (with_locks_)
    builder_.add(rest.lock);
  builder_.add(place.cpu)
      .add(std::uint32_t{0})
      .add(rest.total_ns)
      .add(std::uint64_t{rest.chain.size()})
      .add_bytes(text_of(rest.chain));
  if (with_weights_)
    builder_.add(rest.weight);
  writer_.write(std::as_bytes(std::span(builder_.finish())));
}

void ChainWriter::load() {
  if (std::exchange(is_loaded_, true))
    return;
  auto loaded = stream::Kallsyms::load();
  if (auto* symbols = std::get_if<stream::Kallsyms>(&loaded))
    symbols_ = std::move(*symbols);
}

/// __schedule() and try_to_wake_up() reach the tracepoints; interrupts start in assembly
/// (arch/x86/include/asm/idtentry.h).
ChainWriter::Role ChainWriter::role_of(std::uint64_t avma) {
  const auto [known, is_new] = roles_.try_emplace(avma, Role::kOther);
  if (!is_new)
    return known->second;
  load();
  const auto symbol = symbols_ ? symbols_->find(avma - 1) : std::nullopt;
  if (!symbol)
    return Role::kOther;
  const std::string_view name = symbol->name;
  if (name == "__schedule")
    known->second = Role::kSwitches;
  else if (name == "try_to_wake_up")
    known->second = Role::kWakes;
  else if (name.starts_with("asm_sysvec_") || name == "asm_common_interrupt" ||
           name.starts_with("asm_exc_nmi"))
    known->second = Role::kEntersInterrupt;
  return known->second;
}

/// Returns the number of frames of the program itself, of its callers and of the function `below`;
/// 0 if that is not found.
std::size_t ChainWriter::frames_of_tracing(std::span<const std::uint64_t> frames, Role below) {
  constexpr std::size_t kMost = 8;
  for (std::size_t i = 0; i < std::min(kMost, frames.size()); ++i)
    if (role_of(frames[i]) == below)
      return i + 1;
  return 0;
}

void ChainWriter::add_kernel_part(const unwind::StackOfKernel& stack,
                                  std::vector<std::uint64_t>& chain) {
  if (!stack.is_kernel)
    return;
  const auto frames = stack.frames.subspan(frames_of_tracing(stack.frames, Role::kSwitches));
  if (frames.empty())
    return;
  chain.push_back(PERF_CONTEXT_KERNEL);
  chain.insert(chain.end(), frames.begin(), frames.end());
}

bool ChainWriter::add_waking_kernel_part(const unwind::StackOfKernel& stack,
                                         std::vector<std::uint64_t>& chain) {
  if (!stack.is_kernel)
    return false;
  const auto frames = stack.frames.subspan(frames_of_tracing(stack.frames, Role::kWakes));
  const auto entry = std::find_if(frames.begin(), frames.end(), [this](std::uint64_t avma) {
    return role_of(avma) == Role::kEntersInterrupt;
  });
  const bool is_interrupt = entry != frames.end();
  if (!frames.empty())
    chain.push_back(PERF_CONTEXT_KERNEL);
  chain.insert(chain.end(), frames.begin(), is_interrupt ? entry + 1 : entry);
  return is_interrupt;
}

/// Call chains hold return addresses, from which readers subtract one.  So the exact address that a
/// signal interrupted is stored plus one.
void ChainWriter::add_user_part(const unwind::StackOfKernel& stack,
                                std::vector<std::uint64_t>& chain) {
  if (stack.frames.empty())
    return;
  chain.push_back(PERF_CONTEXT_USER);
  for (std::size_t i = 0; i < stack.frames.size(); ++i) {
    const auto frame = std::bit_cast<unwind::Frame>(stack.frames[i]);
    chain.push_back(frame.address() + (i > 0 && frame.is_exact() ? 1 : 0));
  }
}

}  // namespace pe::waits

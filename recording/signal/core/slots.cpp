// SPDX-License-Identifier: MIT
#include "recording/signal/core/slots.h"

#include <algorithm>

#include "recording/inprocess/atomics.h"
#include "recording/inprocess/runtime/tick.h"
#include "recording/inprocess/runtime/timers.h"
#include "recording/signal/core/process.h"
#include "recording/signal/core/ring_writer.h"

namespace pe::inprocess {

std::uint32_t claim_slot(pid_t tid) noexcept {
  Header& header = process.header();
  const std::uint32_t first = load_relaxed(process.next_slot);
  for (std::uint32_t i = 0; i < process.max_threads; ++i) {
    const std::uint32_t slot = (first + i) % process.max_threads;
    Thread& thread = process.thread(slot);
    if (load_relaxed(thread.state) != kFree ||
        !change<std::uint32_t>(thread.state, kFree, kStarting))
      continue;
    thread.tid = static_cast<std::uint32_t>(tid);
    thread.start_ns = last_tick_ns();
    OwnThread fresh{};
    fresh.is_stack_lost = process.own[slot].is_stack_lost;
    process.own[slot] = fresh;
    constexpr char kNoName[sizeof thread.name]{};
    copy_bytes(thread.name, kNoName, sizeof kNoName);
    std::uint32_t used = load_relaxed(header.threads);
    while (used <= slot && !change(header.threads, used, slot + 1))
      used = load_relaxed(header.threads);
    return slot;
  }
  return kNoSlot;
}

/// If a slot is free now, the reader has freed it since the search found none.
bool is_reader_behind() noexcept {
  for (std::uint32_t slot = 0; slot < process.max_threads; ++slot) {
    const std::uint32_t state = load_relaxed(process.thread(slot).state);
    if (state == kEnded || state == kFree)
      return true;
  }
  return false;
}

/// The lowest slots are reused first, so that the reader's part of the table stays short.
void release(std::uint32_t slot) noexcept {
  publish(process.thread(slot).state, static_cast<std::uint32_t>(kEnded));
  store_relaxed(process.next_slot, std::uint32_t{0});
}

bool arm(std::uint32_t slot, pid_t tid) noexcept {
  OwnThread& own = process.own[slot];
  store_relaxed(own.is_armed, 1U);
  publish(process.thread(slot).state, static_cast<std::uint32_t>(kLive));
  if (process.timer_kind == TimerKind::kProcess)
    return true;
  if (own.timer.start({tid, process.settings.clock, process.settings.hz, process.cookie | slot}))
    return true;  // is_armed stays: the thread may have changed it
  store_relaxed(own.is_armed, 0U);
  return false;
}

void disarm(std::uint32_t slot) noexcept {
  OwnThread& own = process.own[slot];
  store_relaxed(own.is_armed, 0U);
  asm volatile("" ::: "memory");  // keeps this order for the handler in this thread
  own.timer.stop();
}

std::uint32_t live_slot_of(pid_t tid) noexcept {
  const std::uint32_t used = std::min(load_relaxed(process.header().threads), process.max_threads);
  for (std::uint32_t slot = 0; slot < used; ++slot) {
    const Thread& thread = process.thread(slot);
    if (load_relaxed(thread.tid) == static_cast<std::uint32_t>(tid) &&
        load_published(thread.state) == kLive)
      return slot;
  }
  return kNoSlot;
}

}  // namespace pe::inprocess

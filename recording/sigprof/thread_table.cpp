// SPDX-License-Identifier: MIT
#include "recording/sigprof/thread_table.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>

#include "base/clock.h"
#include "recording/inprocess/atomics.h"
#include "recording/inprocess/runtime/own_memory.h"
#include "recording/inprocess/runtime/proc_self.h"

namespace pe::inprocess {
namespace {

class Locked {
 public:
  explicit Locked(pthread_mutex_t& lock) noexcept : lock_(lock) { ::pthread_mutex_lock(&lock_); }
  Locked(const Locked&) = delete;
  Locked(Locked&&) = delete;
  Locked& operator=(const Locked&) = delete;
  Locked& operator=(Locked&&) = delete;
  ~Locked() { ::pthread_mutex_unlock(&lock_); }

 private:
  pthread_mutex_t& lock_;
};

bool has_ended(std::uint32_t tid) noexcept {
  return ::tgkill(::getpid(), static_cast<pid_t>(tid), 0) != 0 && errno == ESRCH;
}

}  // namespace

void ThreadTable::open(const Options& options, std::uint64_t cookie) noexcept {
  ::pthread_mutex_init(&lock_, nullptr);
  options_ = options;
  pid_ = own_pid();
  cookie_ = cookie;
  can_copy_ = can_copy_own_memory();
}

void ThreadTable::free_rings() noexcept {
  for (std::uint32_t i = 0; i < used_; ++i)
    if (slots_[i].ring != nullptr)
      ::munmap(slots_[i].ring, options_.ring_bytes);
}

Slot* ThreadTable::find(pid_t tid) noexcept {
  for (std::uint32_t i = 0; i < used_; ++i) {
    const std::uint32_t number = (next_find_ + i) % used_;
    Slot& slot = slots_[number];
    if (load_relaxed(slot.shared.tid) == static_cast<std::uint32_t>(tid) &&
        load_relaxed(slot.shared.state) == kLive) {
      next_find_ = number + 1;
      return &slot;
    }
  }
  return nullptr;
}

Slot* ThreadTable::free_slot() noexcept {
  for (std::uint32_t number = 0; number < kMost; ++number)
    if (load_published(slots_[number].shared.state) == kFree)
      return &slots_[number];
  return nullptr;
}

Added ThreadTable::add(pid_t tid, StackBounds stack) noexcept {
  const Locked locked(lock_);
  if (is_closed_)
    return Added::kClosed;
  if (Slot* const known = find(tid)) {
    known->seen_scan = scans_;
    return Added::kWasThere;
  }
  Slot* const slot = free_slot();
  errno = ENOMEM;
  if (slot != nullptr && slot->ring == nullptr)
    slot->ring = map_pages<std::byte>(options_.ring_bytes);
  if (slot == nullptr || slot->ring == nullptr)
    return Added::kRefused;
  slot->stack = stack;
  return begin(*slot, tid);
}

Added ThreadTable::begin(Slot& slot, pid_t tid) noexcept {
  const auto number = static_cast<std::uint32_t>(&slot - slots_.data());
  if (!slot.timer.start(
          {tid, options_.clock, options_.hz, cookie_ | number}))  // EINVAL: the thread has ended
    return errno == EINVAL ? Added::kEnded : Added::kRefused;
  slot.shared.start_ns = monotonic_ns();
  slot.shared.tid = static_cast<std::uint32_t>(tid);
  slot.taken_before = slot.shared.samples + slot.shared.lost_samples;
  slot.seen_scan = scans_;
  count_own(added_, std::uint64_t{1});
  publish(used_, std::max(used_, number + 1));
  publish(slot.shared.state, static_cast<std::uint32_t>(kLive));
  return Added::kAdded;
}

void ThreadTable::scan(pid_t except, bool adds) noexcept {
  TaskFolder folder;
  if (!folder.is_open())
    return;
  {
    const Locked locked(lock_);
    ++scans_;
  }
  std::uint64_t refused = 0;
  while (const pid_t tid = folder.next()) {
    if (tid == except)
      continue;
    if (adds) {
      const bool is_first = tid == ::getpid();
      const Added added = add(tid, is_first ? first_stack_bounds() : StackBounds{});
      refused += added == Added::kRefused ? 1 : 0;
    } else {
      const Locked locked(lock_);
      if (Slot* const known = find(tid))
        known->seen_scan = scans_;
    }
  }
  store_relaxed(refused_, std::max(load_relaxed(refused_), refused));
  end_missing();
}

/// Ends the threads that the last scan has not found, and that do not exist any more.
void ThreadTable::end_missing() noexcept {
  const Locked locked(lock_);
  for (std::uint32_t i = 0; i < used_; ++i) {
    Slot& slot = slots_[i];
    if (load_relaxed(slot.shared.state) != kLive || slot.seen_scan == scans_ ||
        !has_ended(slot.shared.tid))
      continue;
    slot.timer.stop();
    publish(slot.shared.state, static_cast<std::uint32_t>(kEnded));
  }
}

void ThreadTable::close() noexcept {
  const Locked locked(lock_);
  is_closed_ = true;
  for (std::uint32_t i = 0; i < used_; ++i)
    slots_[i].timer.stop();
}

void ThreadTable::take(std::uint32_t number, const siginfo_t& signal,
                       const ucontext_t& context) noexcept {
  if (number >= kMost)
    return;
  Slot& slot = slots_[number];
  if (load_published(slot.shared.state) != kLive)
    return;
  const std::uint32_t weight = slot.timer.weight_of(signal);
  if (weight == 0)
    return;
  RingWriter ring(slot.shared, slot.ring, options_.ring_bytes);
  take_sample({.thread = slot.shared,
               .ring = ring,
               .settings = options_,
               .pid = pid_,
               .stack = slot.stack,
               .can_copy = can_copy_},
              weight, context);
}

std::uint32_t ThreadTable::used() const noexcept { return load_published(used_); }
std::uint64_t ThreadTable::refused() const noexcept { return load_relaxed(refused_); }
std::uint64_t ThreadTable::added() const noexcept { return load_relaxed(added_); }

void ThreadTable::copy_ring(const Slot& slot, std::uint64_t head, std::byte* into) const noexcept {
  const std::uint64_t ring_bytes = options_.ring_bytes;
  const std::uint64_t count = head - slot.shared.tail;
  const std::uint64_t offset = slot.shared.tail & (ring_bytes - 1);
  const std::uint64_t first = std::min(count, ring_bytes - offset);
  std::memcpy(into, slot.ring + offset, first);
  std::memcpy(into + first, slot.ring, count - first);
}

void ThreadTable::release(std::uint32_t number) noexcept {
  Slot& slot = slots_[number];
  // Frees the ring's pages; the next thread of the slot finds zeros.
  ::madvise(slot.ring, options_.ring_bytes, MADV_DONTNEED);
  slot.is_announced = false;
  slot.named_ns = 0;
  publish(slot.shared.state, static_cast<std::uint32_t>(kFree));
}

}  // namespace pe::inprocess

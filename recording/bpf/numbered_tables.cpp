// SPDX-License-Identifier: MIT
#include "recording/bpf/numbered_tables.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <unwinder.skel.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstring>

#include "recording/bpf/links.h"

namespace pe::unwind {
namespace {

constexpr unsigned kFirstShift = 32;

/// Waits until all programs have ended that run now.
void wait_for_programs() {
  // kernel/sched/membarrier.c: synchronize_rcu(), and the programs run in RCU's sections.  It is
  // refused on machines with CPUs without a tick.
  if (::syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL, 0, 0) == 0)
    return;
  constexpr useconds_t kLongerThanAnyProgram = 20'000;
  ::usleep(kLongerThanAnyProgram);
}

/// Removes all entries.  New ones that come meanwhile may be removed, too: their stacks or sums
/// then get another number.
void clear(const bpf_map* map) {
  constexpr std::uint32_t kAtOnce = 4096;
  std::vector<std::byte> keys(kAtOnce * std::size_t{bpf_map__key_size(map)});
  std::vector<std::byte> values(kAtOnce * std::size_t{bpf_map__value_size(map)});
  std::uint32_t place = 0;
  for (bool is_first = true;; is_first = false) {
    std::uint32_t count = kAtOnce;
    if (bpf_map_lookup_and_delete_batch(bpf_map__fd(map), is_first ? nullptr : &place, &place,
                                        keys.data(), values.data(), &count, nullptr) != 0)
      return;  // ENOENT: the end
  }
}

}  // namespace

std::uint32_t Halves::first() const {
  return static_cast<std::uint32_t>(std::atomic_ref(next_).load() >> kFirstShift);
}

std::uint32_t Halves::used() const {
  return std::min(room_, static_cast<std::uint32_t>(std::atomic_ref(next_).load()));
}

void Halves::begin(std::uint32_t first_number) {
  const std::uint64_t before =
      std::atomic_ref(next_).exchange(std::uint64_t{first_number} << kFirstShift | 1U);
  last_first_ = static_cast<std::uint32_t>(before >> kFirstShift);
  last_used_ = std::min(room_, static_cast<std::uint32_t>(before));
}

NumberedTables::NumberedTables(unwinder& skeleton)
    : skeleton_(skeleton),
      stacks_({bpf_map__fd(skeleton.maps.stacks),
               sizeof(StackBlock) * bpf_map__max_entries(skeleton.maps.stacks), PROT_READ},
              skeleton.rodata->stack_room, skeleton.data->next_stack),
      sums_({bpf_map__fd(skeleton.maps.sums),
             sizeof(KeyedSum) * bpf_map__max_entries(skeleton.maps.sums), PROT_READ | PROT_WRITE},
            skeleton.rodata->sum_room, skeleton.data->next_sum) {}

std::span<const std::uint64_t> NumberedTables::words_of(std::uint32_t number) const {
  if (number == 0)
    return {};
  if (!stacks_.is_readable(number)) {
    const auto kept = kept_.find(number);
    return kept == kept_.end() ? std::span<const std::uint64_t>{} : kept->second.words;
  }
  const std::size_t place = stacks_.place(number);
  const std::size_t end = (place / stacks_.room() + 1) * stacks_.room();  // of its half
  return {static_cast<const std::uint64_t*>(stacks_.start()) + place * kBlockWords,
          (end - place) * kBlockWords};
}

void NumberedTables::add_sums(std::uint32_t first, std::uint32_t used,
                              std::vector<NumberedSum>& all) const {
  auto* sums = static_cast<KeyedSum*>(sums_.start());
  for (std::uint32_t number = first + 1; number != first + used; ++number) {
    KeyedSum& keyed = sums[sums_.place(number)];
    if (std::atomic_ref(keyed.sum.count).load() != 0)
      all.push_back({number, sums_.place(number), keyed});
  }
}

std::vector<NumberedSum> NumberedTables::read_sums() {
  std::vector<NumberedSum> all;
  if (sums_.room() == 0)
    return all;
  if (has_last_sums_)
    add_sums(sums_.last_first(), std::max(1U, sums_.last_used()), all);
  has_last_sums_ = false;
  add_sums(sums_.first(), sums_.used(), all);
  return all;
}

/// Keeps a stack of an older half.  If the number is that of wakers, it also keeps their stacks.
void NumberedTables::keep(std::uint32_t number) {
  if (number == 0 || stacks_.is_current(number))
    return;
  const auto words = words_of(number);
  if (words.empty())
    return;
  const std::size_t length = std::min<std::size_t>(words.size(), 1 + (words.front() & 0xffff));
  auto [kept, is_new] = kept_.try_emplace(number);
  kept->second.renewal = renewals_;
  if (is_new)
    kept->second.words.assign(words.begin(), words.begin() + static_cast<std::ptrdiff_t>(length));
  if ((words.front() & kHeaderWaker) == 0)
    return;
  for (std::size_t i = 2; i < length; i += 2) {
    const std::uint64_t stacks_of_waker = words[i];
    keep(static_cast<std::uint32_t>(stacks_of_waker >> 32U));
    keep(static_cast<std::uint32_t>(stacks_of_waker));
  }
}

/// A wait that ends after this refers to stacks that are kept now, in the current half, or in the
/// other one.  The caller may take such a wait from a queue after the next renewal, but before the
/// one after that.
void NumberedTables::keep_references() {
  for (const References& references : read_tasks<References>(skeleton_.progs.on_each_reference))
    for (const std::uint32_t number : references.numbers)
      keep(number);
  std::erase_if(kept_, [this](const auto& kept) { return kept.second.renewal + 1 < renewals_; });
}

void NumberedTables::renew() {
  ++renewals_;
  if (sums_.room() != 0) {
    // No program has used the other half since the last renewal.
    const std::uint32_t other = sums_.place(sums_.first() + sums_.room());
    std::memset(static_cast<KeyedSum*>(sums_.start()) + other, 0, sizeof(KeyedSum) * sums_.room());
  }
  stacks_.change([this](std::uint32_t first) {
    return std::ranges::any_of(
        kept_, [&](const auto& kept) { return kept.first - first < stacks_.room(); });
  });
  sums_.change([](std::uint32_t) { return false; });
  wait_for_programs();
  has_last_sums_ = true;
  keep_references();
  clear(skeleton_.maps.stack_numbers);
  clear(skeleton_.maps.sum_numbers);
}

}  // namespace pe::unwind

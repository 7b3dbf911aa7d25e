// SPDX-License-Identifier: MIT
#include "malloctrace/preload/record.h"

#include <algorithm>
#include <mutex>

#include "malloctrace/preload/hooks/hooks_new.h"
#include "malloctrace/preload/memory/private_memory.h"

namespace pe::malloctrace {

// NOLINTNEXTLINE(cppcoreguidelines-avoid-non-const-global-variables)
constinit Filter filter{{1}, 0};

void prepare_filter(bool knows_few) noexcept {
  std::fill(filter.counts.begin(), filter.counts.end(), std::uint8_t{0});
  filter.mask = knows_few ? ~std::uint64_t{0} : 0;
  if (!knows_few)
    filter.counts[0] = 255;
  for (std::size_t i = 0; i < boot_block_count(); ++i)
    filter.of(boot_block(i)) = 255;
}

namespace {

constexpr std::uint8_t kSaturated = 255;

void add_to_filter(const void* memory) noexcept {
  std::uint8_t& count = filter.of(memory);
  std::uint8_t now = load_relaxed(count);
  while (now != kSaturated && !__atomic_compare_exchange_n(&count, &now, now + 1, true,
                                                           __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
  }
}

void remove_from_filter(const void* memory) noexcept {
  std::uint8_t& count = filter.of(memory);
  std::uint8_t now = load_relaxed(count);
  while (now != kSaturated && now != 0 &&
         !__atomic_compare_exchange_n(&count, &now, now - 1, true, __ATOMIC_RELAXED,
                                      __ATOMIC_RELAXED)) {
  }
}

Weight weight_of(const Thread& thread, std::uint64_t bytes) noexcept {
  const std::uint64_t mean = thread.tracer->settings.sample_bytes;
  return mean == 0 ? Weight{bytes, 1} : sample_weight(bytes, mean);
}

/// Whether an allocation that the hook did not pass between samples is a sample.
bool is_sample(Thread& thread, std::size_t bytes) noexcept {
  const std::uint64_t mean = thread.tracer->settings.sample_bytes;
  if (mean == 0)
    return true;
  if (passes_between_samples(bytes))
    return false;  // the thread's first allocation: the distance has only been drawn now
  thread_state.sample_left = thread.distance.next(mean);
  return true;
}

void note_last(Thread& thread, const void* memory) noexcept {
  thread.last_block = memory;
  thread.left_at_last = thread_state.sample_left;
}

/// If every allocation counts, sample_left is always 0.
bool is_still_last(const Thread& thread) noexcept {
  return thread.left_at_last == thread_state.sample_left;
}

LiveBlocks& blocks_of(Tracer& tracer, Owner owner) noexcept {
  return owner == Owner::kMalloc ? tracer.live : tracer.objects;
}

/// Records a block; `insert` adds it to the live ones.
template <typename Insert>
[[gnu::always_inline]] inline void record(Thread& thread, const void* memory, Block block,
                                          Insert insert) noexcept {
  Tracer& tracer = *thread.tracer;
  if (block.site == 0 || !insert()) [[unlikely]]
    return count_up(tracer.shared.header().dropped);
  if (tracer.settings.sample_bytes != 0)
    add_to_filter(memory);
  thread.account.allocate(block.site, weight_of(thread, block.bytes));
  note_last(thread, memory);
}

[[gnu::always_inline]] inline void settle(Thread& thread, const void* memory,
                                          Block block) noexcept {
  const bool is_temporary = thread.last_block == memory && is_still_last(thread);
  if (is_temporary)
    thread.last_block = nullptr;
  thread.account.free(block.site, weight_of(thread, block.bytes), is_temporary);
}

/// `memory` is still allocated.
void count_unknown(const Tracer& tracer, const void* memory) noexcept {
  heap::Header& header = tracer.shared.header();
  if (tracer.settings.sample_bytes != 0)
    return;
  count_up(tracer.is_fork ? header.inherited_frees : header.unknown_frees);
  if (process.is_attached && real.is_glibc)
    count_up(header.earlier_freed_bytes, real.malloc_usable_size(const_cast<void*>(memory)));
}

}  // namespace

void record_block(const void* memory, std::size_t bytes, const void* frame, Owner owner) noexcept {
  if (memory == nullptr) [[unlikely]]
    return note_failure();
  const Hook thread;
  if (!thread) [[unlikely]]
    return note_uncounted();
  if (!is_sample(*thread, bytes))
    return;
  LiveBlocks& live = blocks_of(*thread->tracer, owner);
  live.prefetch(memory);
  const std::uint32_t site = find_site(*thread, static_cast<const std::uint64_t*>(frame));
  const Block block{site, bytes};
  record(*thread, memory, block, [&] { return live.insert(memory, block); });
}

void MappedSites::add(heap::Header& header, std::uint32_t site, std::uint64_t mapped) noexcept {
  const std::lock_guard guard(lock);
  header.mapped_bytes += mapped;
  ++header.mapped_count;
  header.mapped_live_bytes += mapped;
  header.mapped_peak_bytes = std::max(header.mapped_peak_bytes, header.mapped_live_bytes);
  for (std::size_t i = 0; i < kSites; ++i) {
    const std::size_t at = (site + i) % kSites;
    if (sites[at] != 0 && sites[at] != site)
      continue;
    sites[at] = site;
    bytes[at] += mapped;
    if (bytes[at] > header.mapped_top_bytes) {
      header.mapped_top_bytes = bytes[at];
      header.mapped_top_site = site;
    }
    return;
  }
}

void MappedSites::remove(heap::Header& header, std::uint64_t unmapped) noexcept {
  const std::lock_guard guard(lock);
  header.mapped_live_bytes -= std::min(header.mapped_live_bytes, unmapped);
}

void record_mapping(const void* memory, std::size_t bytes, const void* frame) noexcept {
  const bool is_counted = traces_mmap();
  if (is_counted && passes_between_samples(bytes))
    return;
  const Hook thread;
  if (!thread || (is_counted && !is_sample(*thread, bytes)))
    return;
  const std::uint32_t site = find_site(*thread, static_cast<const std::uint64_t*>(frame));
  const auto avma = reinterpret_cast<std::uint64_t>(memory);
  if (site == 0 || !thread->tracer->mappings.add(avma, {site, bytes}))
    return count_up(thread->tracer->shared.header().dropped);
  if (!is_counted)
    return thread->tracer->mapped.add(thread->tracer->shared.header(), site, bytes);
  thread->account.allocate(site, weight_of(*thread, bytes));
  note_last(*thread, memory);
}

namespace {

/// Returns whether the block was known.
[[gnu::always_inline]] inline bool forget_if_known(Thread& thread, const void* memory,
                                                   Owner owner = Owner::kMalloc) noexcept {
  const Block block = blocks_of(*thread.tracer, owner).take(memory);
  if (block.site == 0) [[unlikely]]
    return false;
  if (thread.tracer->settings.sample_bytes != 0)
    remove_from_filter(memory);
  settle(thread, memory, block);
  return true;
}

}  // namespace

void forget_block(const void* memory) noexcept {
  const Hook thread;
  if (thread && !forget_if_known(*thread, memory)) [[unlikely]]
    count_unknown(*thread->tracer, memory);
}

void forget_inner_block(const void* memory) noexcept {
  if (const Hook thread; thread)
    forget_if_known(*thread, memory);
}

void forget_mapping(const void* memory, std::size_t bytes) noexcept {
  const Hook thread;
  if (!thread)
    return;
  const auto avma = reinterpret_cast<std::uint64_t>(memory);
  thread->tracer->mappings.cut(avma, bytes, [&](const MappingList::Cut& cut) {
    if (!traces_mmap())
      return thread->tracer->mapped.remove(thread->tracer->shared.header(), cut.to - cut.from);
    const Weight whole = weight_of(*thread, cut.block.bytes);
    const auto share = [&](std::uint64_t offset) {
      __extension__ using Product = unsigned __int128;
      return static_cast<std::uint64_t>(Product{whole.bytes} * offset / cut.block.bytes);
    };
    // It is one allocation until its last piece goes.
    const bool is_temporary = cut.is_last && thread->last_block != nullptr &&
                              is_still_last(*thread) &&
                              reinterpret_cast<std::uint64_t>(thread->last_block) == cut.block_avma;
    if (is_temporary)
      thread->last_block = nullptr;
    const Weight gone{share(cut.to) - share(cut.from), cut.is_last ? whole.count : 0};
    thread->account.free(cut.block.site, gone, is_temporary);
  });
}

void forget_object(const void* memory) noexcept {
  if (const Hook thread; thread)
    forget_if_known(*thread, memory, Owner::kInterpreter);
}

Reallocation::Reallocation(const void* memory, Owner owner) noexcept
    : memory_(memory), owner_(owner) {
  if (memory == nullptr || is_no_sample(memory))
    return;
  const Hook thread;
  if (!thread)
    return;
  block_ = blocks_of(*thread->tracer, owner).take(memory);
  if (block_.site == 0 && owner == Owner::kMalloc)
    count_unknown(*thread->tracer, memory);
}

void Reallocation::succeed() noexcept {
  if (block_.site == 0)
    return;
  const Hook thread;
  if (!thread)
    return;
  if (thread->tracer->settings.sample_bytes != 0)
    remove_from_filter(memory_);
  settle(*thread, memory_, block_);
}

void Reallocation::fail() noexcept {
  if (block_.site == 0)
    return;
  const Hook thread;
  if (thread && !blocks_of(*thread->tracer, owner_).insert(memory_, block_))
    count_up(thread->tracer->shared.header().dropped);
}

}  // namespace pe::malloctrace

// SPDX-License-Identifier: MIT
#include "stream/held_records.h"

#include <algorithm>

namespace pe::stream {
namespace {
constexpr std::size_t kChunkBytes = 1024 * 1024;
}  // namespace

void HeldRecords::hold(std::uint64_t time_ns, std::initializer_list<Bytes> pieces) {
  std::size_t size = 0;
  for (const Bytes piece : pieces)
    size += piece.size();
  Chunk& chunk = chunk_with_room(size);
  const std::size_t offset = chunk.bytes.size();
  for (const Bytes piece : pieces)
    chunk.bytes.insert(chunk.bytes.end(), piece.begin(), piece.end());
  ++chunk.held;
  held_bytes_ += size;
  // The record stays in place: a chunk is reallocated only while it is empty.
  held_.push_back({time_ns, places_++, &chunk, Bytes(chunk.bytes).subspan(offset)});
}

void HeldRecords::hold_in_place(std::uint64_t time_ns, Bytes record) {
  ++in_place_;
  held_.push_back({time_ns, places_++, nullptr, record});
}

void HeldRecords::make_ready(std::uint64_t until_ns) {
  held_.erase(held_.begin(), held_.begin() + static_cast<std::ptrdiff_t>(ready_begin_));
  ready_begin_ = 0;
  const auto older = [](const Held& a, const Held& b) {
    return a.time_ns != b.time_ns ? a.time_ns < b.time_ns : a.place < b.place;
  };
  // The records of each ring are in order.
  constexpr int kMostMerges = 8;
  auto end_of_run = std::is_sorted_until(held_.begin(), held_.end(), older);
  for (int i = 0; i < kMostMerges && end_of_run != held_.end(); ++i) {
    const auto next = std::is_sorted_until(end_of_run, held_.end(), older);
    std::inplace_merge(held_.begin(), end_of_run, next, older);
    end_of_run = next;
  }
  if (end_of_run != held_.end())
    std::sort(held_.begin(), held_.end(), older);
  const auto end =
      std::upper_bound(held_.begin(), held_.end(), until_ns,
                       [](std::uint64_t time, const Held& held) { return time < held.time_ns; });
  ready_end_ = static_cast<std::size_t>(end - held_.begin());
}

void HeldRecords::make_half_ready() {
  if (has_waiting())
    make_ready(held_[ready_end_ + (held_.size() - ready_end_) / 2].time_ns);
}

std::optional<HeldRecords::Next> HeldRecords::next() {
  release_last();
  if (ready_begin_ == ready_end_)
    return std::nullopt;
  const Held& held = held_[ready_begin_++];
  last_chunk_ = held.chunk;
  last_is_in_place_ = held.chunk == nullptr;
  if (!last_is_in_place_)
    held_bytes_ -= held.bytes.size();
  return Next{held.time_ns, view_record(held.bytes)};
}

/// Releases the record returned last, which is no longer in use.  Its chunk may be freed.
void HeldRecords::release_last() {
  in_place_ -= last_is_in_place_ ? 1 : 0;
  last_is_in_place_ = false;
  if (last_chunk_ == nullptr)
    return;
  Chunk& chunk = *last_chunk_;
  last_chunk_ = nullptr;
  if (--chunk.held > 0)
    return;
  chunk.bytes.clear();
  // Keep as many free chunks as are in use, and two more, for reuse: records come in bursts.
  const auto is_free = [](const auto& other) { return other->bytes.empty(); };
  const auto free =
      static_cast<std::size_t>(std::count_if(chunks_.begin(), chunks_.end(), is_free));
  constexpr std::size_t kKeep = 2;
  if (free > kKeep + (chunks_.size() - free) && &chunk != chunks_.back().get())
    std::erase_if(chunks_, [&](const auto& other) { return other.get() == &chunk; });
}

HeldRecords::Chunk& HeldRecords::chunk_with_room(std::size_t bytes) {
  const auto has_room = [bytes](const Chunk& chunk) {
    return chunk.bytes.empty() || chunk.bytes.size() + bytes <= chunk.bytes.capacity();
  };
  if (!chunks_.empty() && has_room(*chunks_.back()))
    return *chunks_.back();
  const auto empty = std::find_if(chunks_.begin(), chunks_.end(), [](const auto& chunk) {
    return chunk->held == 0 && chunk->bytes.empty();
  });
  if (empty != chunks_.end()) {
    std::rotate(empty, empty + 1, chunks_.end());
  } else {
    chunks_.push_back(std::make_unique<Chunk>());
    chunks_.back()->bytes.reserve(kChunkBytes);
  }
  return *chunks_.back();
}

}  // namespace pe::stream

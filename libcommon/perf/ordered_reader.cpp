// SPDX-License-Identifier: MIT
#include "perf/ordered_reader.h"

#include <algorithm>
#include <limits>

namespace pe::perf {
namespace {
constexpr std::size_t kChunkBytes = 1024 * 1024;
constexpr std::uint64_t kEverything = std::numeric_limits<std::uint64_t>::max();
}  // namespace

std::optional<Record> OrderedReader::next() {
  release_last();
  for (;;) {
    if (auto record = next_ready())
      return record;
    if (at_end_)
      return std::nullopt;
    const auto record = reader_.next();
    if (!record) {
      at_end_ = true;
      make_ready(kEverything);
      continue;
    }
    if (auto passed = pass_or_hold(*record))
      return passed;
  }
}

std::optional<Record> OrderedReader::next_ready() {
  if (ready_begin_ < ready_end_) {
    const Held& held = held_[ready_begin_++];
    if (held.time_ns < handed_out_ns_)
      ++late_;
    else
      handed_out_ns_ = held.time_ns;
    last_chunk_ = held.chunk;
    held_bytes_ -= held.size;
    return view_record(Bytes(held.chunk->bytes).subspan(held.offset, held.size));
  }
  if (round_is_due_) {
    round_is_due_ = false;
    return view_record(round_);
  }
  return std::nullopt;
}

/// Hands the record on if it need not wait.
std::optional<Record> OrderedReader::pass_or_hold(const Record& record) {
  if (record.type == kRecordHeaderAttr || record.type == kRecordEventUpdate) {
    const bool understood =
        record.type == kRecordHeaderAttr ? events_.add(record) : events_.update(record);
    malformed_events_ += understood ? 0 : 1;
    return record;
  }
  if (record.type == kRecordFinishedRound) {
    ends_with_round_ = true;
    make_ready(newest_of_last_round_ns_);
    newest_of_last_round_ns_ = newest_ns_;
    round_.assign(record.bytes.begin(), record.bytes.end());
    round_is_due_ = true;
    return std::nullopt;
  }
  const Event* event = record.is_ours() ? nullptr : events_.find(record);
  const std::uint64_t time_ns = event == nullptr ? 0 : time_of(record, event->attr);
  ends_with_round_ = ends_with_round_ && record.type >= kRecordFirstOfPerf && !record.is_ours();
  const bool has_time = time_ns != 0 && time_ns != kEverything;
  if (!has_time) {
    const bool keeps_its_place = record.is_ours() || record.is_sample();
    if (!keeps_its_place ||
        ready_end_ == held_.size())  // nothing is held back that it could overtake
      return record;
    hold(record, newest_ns_);
    return std::nullopt;
  }
  newest_ns_ = std::max(newest_ns_, time_ns);
  hold(record, time_ns);
  if (held_bytes_ > max_held_bytes_)
    make_ready(held_[ready_end_ + (held_.size() - ready_end_) / 2].time_ns);
  return std::nullopt;
}

void OrderedReader::hold(const Record& record, std::uint64_t time_ns) {
  Chunk& chunk = chunk_with_room(record.bytes.size());
  const auto offset = static_cast<std::uint32_t>(chunk.bytes.size());
  chunk.bytes.insert(chunk.bytes.end(), record.bytes.begin(), record.bytes.end());
  ++chunk.held;
  held_bytes_ += record.bytes.size();
  held_.push_back(
      {time_ns, places_++, &chunk, offset, static_cast<std::uint32_t>(record.bytes.size())});
}

/// Sorts what is held and lets go of everything up to `until_ns`.
void OrderedReader::make_ready(std::uint64_t until_ns) {
  held_.erase(held_.begin(), held_.begin() + static_cast<std::ptrdiff_t>(ready_begin_));
  ready_begin_ = 0;
  const auto older = [](const Held& a, const Held& b) {
    return a.time_ns != b.time_ns ? a.time_ns < b.time_ns : a.place < b.place;
  };
  if (!std::is_sorted(held_.begin(), held_.end(), older))
    std::sort(held_.begin(), held_.end(), older);
  const auto end =
      std::upper_bound(held_.begin(), held_.end(), until_ns,
                       [](std::uint64_t time, const Held& held) { return time < held.time_ns; });
  ready_end_ = static_cast<std::size_t>(end - held_.begin());
}

/// The record handed out last is no longer looked at; its chunk may go.
void OrderedReader::release_last() {
  if (last_chunk_ == nullptr)
    return;
  Chunk& chunk = *last_chunk_;
  last_chunk_ = nullptr;
  if (--chunk.held > 0)
    return;
  chunk.bytes.clear();
  // The one being filled, and one to follow it, are kept for reuse.
  constexpr std::size_t kKeep = 2;
  if (chunks_.size() > kKeep && &chunk != chunks_.back().get())
    std::erase_if(chunks_, [&](const auto& other) { return other.get() == &chunk; });
}

OrderedReader::Chunk& OrderedReader::chunk_with_room(std::size_t bytes) {
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

std::string OrderedReader::damage() const {
  if (!reader_.damage().empty())
    return reader_.damage();
  if (reader_.is_pipe_format() && !ends_with_round_)
    return "ends before its last round was finished: the recorder was cut off";
  return {};
}

}  // namespace pe::perf

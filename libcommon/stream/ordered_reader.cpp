// SPDX-License-Identifier: MIT
#include "stream/ordered_reader.h"

#include <algorithm>
#include <limits>

#include "stream/user_copy.h"

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

namespace {

constexpr std::uint64_t kUserDeferred = -std::uint64_t{640};  // PERF_CONTEXT_USER_DEFERRED
constexpr std::size_t kMarkAndNumber = 2;

}  // namespace

bool may_defer(const perf_event_attr& attr) noexcept {
  // The bit after sigtrap, in the word after read_format; older headers have no name for it.
  constexpr std::size_t kFlagsAt = offsetof(perf_event_attr, read_format) + sizeof(std::uint64_t);
  constexpr unsigned kBit = 38;
  std::uint64_t flags = 0;
  std::memcpy(&flags, reinterpret_cast<const char*>(&attr) + kFlagsAt, sizeof flags);
  return (flags >> kBit & 1) != 0;
}

std::optional<std::uint64_t> deferred_part(const Sample& sample) {
  const U64View chain = sample.callchain;
  return chain.size() >= kMarkAndNumber && chain[chain.size() - kMarkAndNumber] == kUserDeferred
             ? std::optional(chain[chain.size() - 1])
             : std::nullopt;
}

bool DeferredChains::keep(const Record& record, const perf_event_attr& attr) {
  const auto sample = has_user_copy(attr) ? std::nullopt : parse_sample(record, attr);
  const auto number = sample ? deferred_part(*sample) : std::nullopt;
  if (!number || record.bytes.size() > kMaxBytes - bytes_)
    return false;
  bytes_ += record.bytes.size();
  kept_.emplace(*number, Kept{attr, sample->time_ns, {record.bytes.begin(), record.bytes.end()}});
  return true;
}

void DeferredChains::join(const Record& deferred, const OnSample& on_sample) {
  ByteReader reader(deferred.body());
  const auto number = reader.take<std::uint64_t>();
  const auto count = reader.take<std::uint64_t>();
  if (!number || !count || *count > reader.left().size() / sizeof(std::uint64_t))
    return;
  const U64View user(reader.left().first(static_cast<std::size_t>(*count) * sizeof(std::uint64_t)));
  const auto [first, end] = kept_.equal_range(*number);
  std::size_t left_bytes = kMaxBytes;  // any number of samples may wait for one long part
  for (auto item = first; item != end; ++item) {
    const Kept& kept = item->second;
    const Record record = view_record(kept.bytes);
    bytes_ -= kept.bytes.size();
    const auto sample = parse_sample(record, kept.attr);
    if (!sample)
      continue;
    std::vector<std::uint64_t> chain;
    for (std::size_t i = 0; i + kMarkAndNumber < sample->callchain.size(); ++i)
      chain.push_back(sample->callchain[i]);
    for (std::size_t i = 0; i < user.size(); ++i)
      chain.push_back(user[i]);
    std::size_t left_out = 0;
    const auto text = replace_user_copy(record, *sample, chain, builder_, left_out);
    const bool has_room = text.size() <= left_bytes;
    left_bytes -= has_room ? text.size() : 0;
    on_sample(kept.time_ns, has_room ? view_record(std::as_bytes(std::span(text))) : record);
  }
  kept_.erase(first, end);
}

void DeferredChains::release(std::uint64_t until_ns, const OnSample& on_sample) {
  std::erase_if(kept_, [&](const auto& item) {
    const Kept& kept = item.second;
    if (kept.time_ns > until_ns)
      return false;
    bytes_ -= kept.bytes.size();
    on_sample(kept.time_ns, view_record(kept.bytes));
    return true;
  });
}

namespace {
constexpr std::uint64_t kEverything = std::numeric_limits<std::uint64_t>::max();

/// Returns whether `record` may follow the last round: perf writes each counter's losses at the
/// very end.
bool may_follow_last_round(const Record& record) {
  return record.type == PERF_RECORD_LOST_SAMPLES ||
         (record.type >= kRecordFirstOfPerf && !record.is_ours());
}
}  // namespace

std::optional<Record> OrderedReader::next() {
  for (;;) {
    if (auto record = next_ready())
      return record;
    if (at_end_)
      return std::nullopt;
    const auto record = reader_.next();
    if (!record) {
      at_end_ = true;
      release_chains(kEverything);
      held_.make_ready(kEverything);
      continue;
    }
    if (auto passed = pass_or_hold(*record))
      return passed;
  }
}

std::optional<Record> OrderedReader::next_ready() {
  if (const auto next = held_.next()) {
    note_handed_out(next->time_ns);
    return next->record;
  }
  if (round_is_due_) {
    round_is_due_ = false;
    return view_record(round_);
  }
  return std::nullopt;
}

void OrderedReader::note_handed_out(std::uint64_t time_ns) {
  late_ += time_ns < handed_out_ns_ ? 1 : 0;
  handed_out_ns_ = std::max(handed_out_ns_, time_ns);
}

/// Returns whether a record about events was understood; nullopt for other records.
std::optional<bool> OrderedReader::apply_to_events(const Record& record) {
  switch (record.type) {
    case kRecordHeaderAttr:
      return events_.add(record);
    case kRecordEventUpdate:
      return events_.update(record);
    case kRecordTracingData:
      return events_.describe(record);
    default:
      return std::nullopt;
  }
}

/// Returns the record if it need not wait, and holds it otherwise.
std::optional<Record> OrderedReader::pass_or_hold(const Record& record) {
  if (record.is_segment_head()) {
    // The processes of the head must not overtake the records before it.
    release_chains(kEverything);
    held_.make_ready(kEverything);
    events_.begin_again();
    return std::nullopt;
  }
  if (const auto is_understood = apply_to_events(record)) {
    malformed_events_ += *is_understood ? 0 : 1;
    return record;
  }
  if (record.type == kRecordFinishedRound) {
    may_end_ = (record.misc & kMiscMoreRounds) == 0;
    is_in_order_ |= (record.misc & kMiscInOrder) != 0 && held_.is_empty();
    if (is_in_order_)
      return record;
    release_chains(newest_of_last_round_ns_);
    held_.make_ready(newest_of_last_round_ns_);
    newest_of_last_round_ns_ = newest_ns_;
    round_.assign(record.bytes.begin(), record.bytes.end());
    round_is_due_ = true;
    return std::nullopt;
  }
  const Event* event = record.is_ours() ? nullptr : events_.find(record);
  const std::uint64_t time_ns = event == nullptr ? 0 : time_of(record, event->attr);
  may_end_ = may_end_ && may_follow_last_round(record);
  const bool has_time = time_ns != 0 && time_ns != kEverything;
  if (!has_time) {
    const bool keeps_its_place = record.is_ours() || record.is_sample();
    if (!keeps_its_place || !held_.has_waiting())  // it cannot overtake a held record
      return record;
    held_.hold(newest_ns_, {record.bytes});
    return std::nullopt;
  }
  if (is_in_order_) {
    note_handed_out(time_ns);
    return record;
  }
  newest_ns_ = std::max(newest_ns_, time_ns);
  hold(record, event->attr, time_ns);
  return std::nullopt;
}

void OrderedReader::release_chains(std::uint64_t until_ns) {
  chains_.release(until_ns, [this](std::uint64_t time_ns, const Record& record) {
    held_.hold(time_ns, {record.bytes});
  });
}

void OrderedReader::hold(const Record& record, const perf_event_attr& attr, std::uint64_t time_ns) {
  if (record.type == kRecordCallChainDeferred)
    chains_.join(record, [this](std::uint64_t sampled_ns, const Record& joined) {
      held_.hold(sampled_ns, {joined.bytes});
    });
  else if (record.is_sample() && may_defer(attr) && chains_.keep(record, attr))
    return;
  const auto sample =
      record.is_sample() && has_user_copy(attr) ? parse_sample(record, attr) : std::nullopt;
  if (sample)
    hold_trimmed(record, *sample, held_);
  else
    held_.hold(time_ns, {record.bytes});
  if (held_.bytes() > max_held_bytes_)
    held_.make_half_ready();
}

std::string OrderedReader::damage() const {
  if (!reader_.damage().empty())
    return reader_.damage();
  if (reader_.is_pipe_format() && !may_end_)
    return "has no end mark: its writer was cut off";
  return {};
}

}  // namespace pe::stream

// SPDX-License-Identifier: MIT
#include "stream/ordered_reader.h"

#include <algorithm>
#include <limits>

#include "stream/user_copy.h"

namespace pe::stream {
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

// SPDX-License-Identifier: MIT
#include "stream/session.h"

#include <algorithm>

#include "base/text.h"

namespace pe::stream {

std::optional<Record> Session::next() {
  sample_.reset();
  loss_.reset();
  event_ = nullptr;
  const auto record = reader_.next();
  if (record && !apply(*record))
    ++counts_.malformed_records;
  return record;
}

/// Returns false if the record is malformed.
bool Session::apply(const Record& record) {
  const bool is_understood = history_.apply(record);
  switch (record.type) {
    case PERF_RECORD_SAMPLE:
      event_ = reader_.events().find(record);
      if (event_ != nullptr)
        sample_ = parse_sample(record, event_->attr);
      if (sample_ && event_->weight)
        weigh(*sample_, *event_->weight);
      counts_.without_user_part += sample_ && deferred_part(*sample_) ? 1 : 0;
      counts_.samples += sample_ && !span_event(event_->name) ? 1 : 0;
      return sample_.has_value();
    case PERF_RECORD_LOST:
    case PERF_RECORD_LOST_SAMPLES: {
      const auto* event = reader_.events().find(record);
      const std::uint64_t time_ns = event == nullptr ? 0 : time_of(record, event->attr);
      const std::uint64_t told = lost_.told();
      const bool is_understood_loss = lost_.add(record, time_ns);
      if (time_ns != 0 && lost_.told() != told)
        loss_ = {lost_.told() - told, time_ns, event};
      return is_understood_loss;
    }
    case kRecordCompressed:
    case kRecordCompressed2:
      ++counts_.skipped_records;
      return true;
    default:
      return is_understood;
  }
}

void Session::weigh(Sample& sample, const TracepointField& field) {
  const auto value = number_at(sample.raw, field.offset, field.size, field.is_signed);
  counts_.weightless += value.value_or(-1) < 0 ? 1 : 0;
  sample.period = static_cast<std::uint64_t>(std::max<std::int64_t>(value.value_or(0), 0));
}

Counts Session::counts() const {
  Counts counts = counts_;
  counts.lost = lost_.count();
  counts.malformed_records += reader_.malformed_events();
  counts.out_of_order = reader_.late_records();
  counts.skipped_aux_bytes = reader_.skipped_aux_bytes();
  counts.left_out_segments = reader_.left_out_segments();
  return counts;
}

std::string describe_losses(const Counts& counts) {
  std::string text;
  const auto add = [&text](std::uint64_t count, std::string_view noun, std::string_view what) {
    if (count == 0)
      return;
    text += text.empty() ? "" : ", ";
    text += plural(count, noun) + std::string(what);
  };
  add(counts.lost, "sample", " lost while recording");
  add(counts.malformed_records, "malformed record", " skipped");
  add(counts.skipped_records, "compressed record", " skipped");
  add(counts.skipped_aux_bytes, "byte", " of AUX data skipped");
  add(counts.left_out_segments, "segment", " left out: damaged, removed, or of an earlier boot");
  add(counts.out_of_order, "record", " out of order");
  add(counts.without_user_part, "sample", " without the program's stack, which arrived too late");
  add(counts.weightless, "sample", " counted as 0: the field is negative or missing");
  return text;
}

}  // namespace pe::stream

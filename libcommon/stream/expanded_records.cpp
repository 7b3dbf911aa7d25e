// SPDX-License-Identifier: MIT
#include "stream/expanded_records.h"

#include <limits>

namespace pe::stream {
namespace {

constexpr std::size_t kMostBytesOfARecord = std::numeric_limits<std::uint16_t>::max();
// Holds the unread part of one record and much more.
constexpr std::size_t kBufferBytes = 256 * 1024;

std::optional<Bytes> data_of(const Record& compressed) {
  if (compressed.type == kRecordCompressed)
    return compressed.body();
  ByteReader reader(compressed.body());
  const auto size = reader.take<std::uint64_t>();
  return size ? reader.take_bytes(*size) : std::nullopt;
}

}  // namespace

void ExpandedRecords::begin(const Record& compressed) {
  const auto data = data_of(compressed);
  is_damaged_ = is_damaged_ || !data;
  if (is_damaged_)
    return;
  if (!zstd_) {
    zstd_ = std::make_unique<ZstdExpander>();
    buffer_.resize(kBufferBytes);
  }
  compressed_ = *data;
  expanded_of_this_ = 0;
}

std::optional<Record> ExpandedRecords::next() {
  while (!is_damaged_) {
    if (auto record = take_record())
      return record;
    if (is_damaged_ || !expand_more())
      break;
  }
  return std::nullopt;
}

/// Returns the record at begin_, if all of it has arrived.
std::optional<Record> ExpandedRecords::take_record() {
  const Bytes bytes = Bytes(buffer_).subspan(begin_, end_ - begin_);
  ByteReader reader(bytes);
  const auto header = reader.take<perf_event_header>();
  if (!header)
    return std::nullopt;
  is_damaged_ = header->size < sizeof *header || header->type >= kRecordFirstOfPerf;
  if (is_damaged_ || header->size > bytes.size())
    return std::nullopt;
  begin_ += header->size;
  return view_record(bytes.first(header->size));
}

/// Fills the buffer after the bytes left in it; false if no bytes came.
bool ExpandedRecords::expand_more() {
  static_assert(kBufferBytes > kMostBytesOfARecord);  // so there is room after an unfinished record
  if (!zstd_)
    return false;
  std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
  end_ -= begin_;
  begin_ = 0;
  const auto n = zstd_->expand(compressed_, std::span(buffer_).subspan(end_));
  is_damaged_ = !n || *n > kMaxBytesOfOne - expanded_of_this_;
  if (is_damaged_)
    return false;
  expanded_of_this_ += *n;
  end_ += *n;
  return *n > 0;
}

}  // namespace pe::stream

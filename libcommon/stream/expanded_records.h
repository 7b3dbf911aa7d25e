// Expands the compressed records that `perf record -z` writes.
//
//   COMPRESSED   {header, data up to the record's end}
//   COMPRESSED2  {header, u64 size, data of that size, padding to 8}
//
// The concatenated data of all these records is one Zstandard stream.  It contains the records from
// the kernel's rings; a record may start in one compressed record and end in the next.  perf
// compresses only the kernel's own types (below 64).  Another type, or a record of less than 8
// bytes, means that the record boundary is lost.  Damage is permanent, because all data in the
// stream depends on the data before it.
//
// The data is expanded gradually: 64 KiB can expand to gigabytes, but memory is limited to a block
// and zstd's window.
// Source: tools/perf/util/zstd.c, tools/perf/util/session.c, linux/perf/event.h.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "base/io/zstd.h"
#include "stream/records/record.h"

namespace pe::stream {

class ExpandedRecords {
 public:
  /// The most bytes that one compressed record may expand to.  perf compresses the content of one
  /// ring at a time, by default 512 KiB, so only damaged data exceeds this.
  static constexpr std::size_t kMaxBytesOfOne = 256UL * 1024 * 1024;

  /// Continues with a COMPRESSED or COMPRESSED2 record, after next() has returned nullopt.  Its
  /// bytes must stay valid until next() returns nullopt again.
  void begin(const Record& compressed);

  /// Returns the next record; the view is valid until the next call.  Returns nullopt if more
  /// compressed records are needed, or if is_damaged().
  std::optional<Record> next();

  [[nodiscard]] bool is_damaged() const noexcept { return is_damaged_; }
  /// Returns whether only a part of a record has arrived.
  [[nodiscard]] bool has_part() const noexcept { return begin_ < end_; }

 private:
  std::optional<Record> take_record();
  bool expand_more();

  std::unique_ptr<ZstdExpander> zstd_;  ///< null until the first compressed record
  Bytes compressed_;                    ///< data of the current record that is not expanded yet
  std::size_t expanded_of_this_ = 0;    ///< bytes
  std::vector<std::byte> buffer_;
  std::size_t begin_ = 0, end_ = 0;  ///< bytes of buffer_ that next() has not returned
  bool is_damaged_ = false;
};

}  // namespace pe::stream

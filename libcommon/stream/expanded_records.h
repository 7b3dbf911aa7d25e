// The records inside compressed ones, as `perf record -z` writes them.
//
//   COMPRESSED   {header, data up to the record's end}
//   COMPRESSED2  {header, u64 size, data of that size, padding to 8}
//
// The data of all these records, one behind the other, is one Zstandard stream of the records that
// came out of the kernel's rings; a record may begin in one and end in the next.  Only the kernel's
// own types are compressed (below 64): anything else there, or a record of less than 8 bytes, means
// that the place is lost.  What is damaged stays so: everything in the stream depends on what came
// before it.
//
// Expanded bit by bit: 64 KiB can stand for gigabytes, memory is a block and zstd's window.
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
  /// What one compressed record may expand to.  perf compresses what lies in a ring at a time, of
  /// 512 KiB unless asked for more, so only damage exceeds this.
  static constexpr std::size_t kMaxBytesOfOne = 256UL * 1024 * 1024;

  /// Goes on with a COMPRESSED or COMPRESSED2 record, once next() has returned nullopt; its bytes
  /// must stay until it does so again.
  void begin(const Record& compressed);

  /// The next record; the view dies with the next call.  nullopt: more compressed records are
  /// needed, or is_damaged().
  std::optional<Record> next();

  [[nodiscard]] bool is_damaged() const noexcept { return is_damaged_; }
  /// Is a record waiting for its other part?
  [[nodiscard]] bool has_part() const noexcept { return begin_ < end_; }

 private:
  std::optional<Record> take_record();
  bool expand_more();

  std::unique_ptr<ZstdExpander> zstd_;  ///< null until the first compressed record
  Bytes compressed_;                    ///< of the record at hand, what was not expanded yet
  std::size_t expanded_of_this_ = 0;    ///< bytes
  std::vector<std::byte> buffer_;
  std::size_t begin_ = 0, end_ = 0;  ///< bytes of buffer_ that were not handed out
  bool is_damaged_ = false;
};

}  // namespace pe::stream

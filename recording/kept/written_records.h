// The records in what a recorder writes.
// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <string_view>

#include "stream/records/record.h"

namespace pe::recording {

class WrittenRecords {
 public:
  /// Calls `take(const stream::Record&)` for each record.  Each write has whole records; the first
  /// ones begin with the stream's header, whose two numbers may be written one by one.
  template <typename Take>
  void take(std::string_view bytes, Take&& take) {
    const std::size_t of_header = std::min(header_left_, bytes.size());
    header_left_ -= of_header;
    ByteReader reader(std::as_bytes(std::span(bytes.substr(of_header))));
    while (const auto record = stream::take_record(reader))
      take(*record);
  }

 private:
  std::size_t header_left_ = stream::kPipeHeaderBytes;
};

}  // namespace pe::recording

// Builds compressed records as `perf record -z` writes them: all are one Zstandard stream, which is
// flushed after each record.
// SPDX-License-Identifier: MIT
#pragma once

#include <zstd.h>

#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>

#include "stream/stream_writer.h"

namespace pe::testing {

class CompressedStream {
 public:
  explicit CompressedStream(std::uint32_t type = stream::kRecordCompressed) : type_(type) {}

  /// Returns the next record, which holds `data`.  `data` may be a part of a record.
  std::string record(std::string_view data) {
    std::string packed(60 * 1024, '\0');
    ZSTD_inBuffer in{data.data(), data.size(), 0};
    ZSTD_outBuffer out{packed.data(), packed.size(), 0};
    if (::ZSTD_compressStream2(stream_.get(), &out, &in, ZSTD_e_flush) != 0)
      throw std::runtime_error("does not fit a record");
    packed.resize(out.pos);
    builder_.begin(type_);
    if (type_ == stream::kRecordCompressed2)
      builder_.add(std::uint64_t{packed.size()}).add_bytes(packed).pad();
    else
      builder_.add_bytes(packed);
    return std::string(builder_.finish());
  }

 private:
  struct Free {
    void operator()(ZSTD_CCtx* stream) const noexcept { ::ZSTD_freeCCtx(stream); }
  };

  std::uint32_t type_;
  std::unique_ptr<ZSTD_CCtx, Free> stream_{::ZSTD_createCCtx()};
  stream::RecordBuilder builder_;
};

}  // namespace pe::testing

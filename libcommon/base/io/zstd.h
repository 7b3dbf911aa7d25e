// Expands Zstandard data (RFC 8878): whole buffers, such as sections of ELF files, and streams.
//
// ZstdExpander expands a stream as it comes, one buffer at a time.  However large the expanded data
// is, memory is limited to the caller's buffer and zstd's window of at most 128 MiB (zstd.h,
// ZSTD_WINDOWLOG_LIMIT_DEFAULT).
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>

#include "base/byte_reader.h"

namespace pe {

/// Fills `out` from the zstd frames that `bytes` consists of.  Returns false if they are damaged or
/// their expanded size is not that of `out`.
bool unzstd(Bytes bytes, std::span<std::byte> out);

class ZstdExpander {
 public:
  /// Throws Error if zstd cannot be set up.
  ZstdExpander();
  ZstdExpander(const ZstdExpander&) = delete;
  ZstdExpander& operator=(const ZstdExpander&) = delete;
  ZstdExpander(ZstdExpander&&) = delete;
  ZstdExpander& operator=(ZstdExpander&&) = delete;
  ~ZstdExpander();

  /// Consumes bytes from the front of `compressed`, the next ones of the stream, and writes the
  /// expanded bytes to `into`.  Returns their number, which is less than `into` holds only if all
  /// input was consumed.  Returns nullopt if the data is damaged, and in every later call.  The
  /// stream may continue in the next call's bytes.
  std::optional<std::size_t> expand(Bytes& compressed, std::span<std::byte> into);

 private:
  struct State;

  std::unique_ptr<State> state_;
  bool is_damaged_ = false;
};

}  // namespace pe

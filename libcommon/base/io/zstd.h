// Zstandard (RFC 8878): whole buffers, as sections of ELF files are, and streams.
//
// A stream is expanded as it comes, a buffer at a time: however much a few
// bytes blow up to, memory is what the caller asks for and zstd's window, at most 128 MiB
// (zstd.h, ZSTD_WINDOWLOG_LIMIT_DEFAULT).
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>

#include "base/byte_reader.h"

namespace pe {

/// Fills `out`, whose size must be that of the data, from the zstd frames that are all of
/// `bytes`; false if they are damaged or the size is another.
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

  /// Takes in bytes from the front of `compressed`, the stream's next ones, and writes what they
  /// expand to: how much that is, less than `into` holds only if all were taken in; nullopt if the
  /// data is damaged, and then for good.  The stream may go on in the next call's bytes.
  std::optional<std::size_t> expand(Bytes& compressed, std::span<std::byte> into);

 private:
  struct State;

  std::unique_ptr<State> state_;
  bool is_damaged_ = false;
};

}  // namespace pe

// Compresses and expands whole buffers in the zlib format (RFC 1950), which browsers inflate and
// ELF files contain.  It can also compress to the gzip format.  gzip.h reads data in pieces.
//
// It uses libdeflate, not zlib.  Both were measured on the embedded call tree of 100,000 stacks
// (1.2 MB).  At its lowest level, libdeflate takes 12 ms for 809 KB, and zlib 33 ms for 835 KB.  At
// level 6, libdeflate takes 27 ms for 797 KB, and zlib 96 ms for 810 KB.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/byte_reader.h"

namespace pe {

/// `level` is from 1, fastest, to 12, smallest.  Throws Error if memory runs out.
std::string deflate(std::string_view bytes, int level);

/// Like deflate(), but in the gzip format (RFC 1952), without a time stamp.
std::string gzip(std::string_view bytes, int level);

/// Fills `out` from the zlib stream at the start of `bytes`.  Returns false if the data is damaged
/// or its expanded size is not that of `out`.  Throws Error if memory runs out.
bool inflate(Bytes bytes, std::span<std::byte> out);

/// Returns the content of the zlib stream at the start of `bytes`, whose expanded size is not
/// known. Returns nullopt if the data is damaged or holds more than `limit_bytes`.  Throws Error if
/// memory runs out.
std::optional<std::string> inflate_all(Bytes bytes, std::size_t limit_bytes);

/// Extends `so_far`, the CRC-32 of gzip (RFC 1952, 8) of the data before `bytes`, by `bytes`; start
/// with 0.
std::uint32_t crc32(std::uint32_t so_far, Bytes bytes) noexcept;

// Decompresses xz data, such as mini debug information.
//
// The format has no reliable expanded size: 1 MB can become 7 GB.  So the caller sets a limit.

/// Returns the content of the .xz stream at the start of `bytes`.  Returns nullopt if the stream is
/// damaged or cut off, holds more than `limit_bytes`, or needs a dictionary larger than that of
/// `xz -9` (64 MiB).  Memory: the result, up to twice while it grows, and the dictionary.
std::optional<std::vector<std::byte>> unxz(Bytes bytes, std::uint64_t limit_bytes);

// Expands Zstandard data (RFC 8878): whole buffers, such as sections of ELF files, and streams.  It
// can also compress streams.
//
// ZstdExpander expands a stream as it comes, one buffer at a time.  However large the expanded data
// is, memory is limited to the caller's buffer and zstd's window of at most 128 MiB (zstd.h,
// ZSTD_WINDOWLOG_LIMIT_DEFAULT).

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

/// Compresses a stream piece by piece, at zstd's fastest level of the usual ones (1).
class ZstdCompressor {
 public:
  /// Throws Error if zstd cannot be set up.
  ZstdCompressor();
  ZstdCompressor(const ZstdCompressor&) = delete;
  ZstdCompressor& operator=(const ZstdCompressor&) = delete;
  ZstdCompressor(ZstdCompressor&&) = delete;
  ZstdCompressor& operator=(ZstdCompressor&&) = delete;
  ~ZstdCompressor();

  /// Ends the stream, so that the next piece begins another one.
  enum class After : bool { kMore, kEnd };
  /// Returns the next bytes of the stream, from which all of `piece` can be expanded.  Throws
  /// Error.
  std::string_view compress(std::string_view piece, After after);

 private:
  struct State;

  std::unique_ptr<State> state_;
  std::string out_;
};

}  // namespace pe

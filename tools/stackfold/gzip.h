// Reads gzip data (RFC 1952) as it comes, one buffer at a time.  However large the expanded data
// is, memory is limited to the caller's buffer and zlib's window.
//
// It uses zlib, which returns data as it comes; libdeflate (base/io/compression.h) needs all of it
// at once.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "base/io/input.h"

namespace pe {

/// Returns whether these first bytes of an input start gzip data.
[[nodiscard]] bool is_gzip(Bytes head) noexcept;

class GzipReader {
 public:
  /// `input` must outlive the reader.  Throws Error if zlib cannot be set up.
  explicit GzipReader(Input& input);
  GzipReader(const GzipReader&) = delete;
  GzipReader& operator=(const GzipReader&) = delete;
  GzipReader(GzipReader&&) = delete;
  GzipReader& operator=(GzipReader&&) = delete;
  ~GzipReader();

  /// Decompresses at most `into.size()` bytes; 0 only at the end, or where the data is damaged.
  /// Concatenated gzip files are read as one.  Throws Error if the input cannot be read.
  std::size_t read(std::span<std::byte> into);

  /// Returns why reading stopped early; empty if it did not.
  [[nodiscard]] const std::string& damage() const noexcept { return damage_; }

 private:
  struct State;

  bool fill();
  bool begin_next_member();

  Input& input_;
  std::unique_ptr<State> state_;
  std::string damage_;
  bool at_end_ = false;
};

/// Returns all of the input, unpacked if it is gzip data.  If it is damaged or larger than
/// `limit_bytes`, `damage` has the reason.
std::string read_unpacked(Input& input, std::size_t limit_bytes, std::string& damage);

}  // namespace pe

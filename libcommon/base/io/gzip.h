// Reading gzip data (RFC 1952) as it comes, a buffer at a time: however much a few
// bytes blow up to, memory is what the caller asks for and zlib's window.
//
// By zlib, which hands data out as it comes; libdeflate (base/io/deflate.h) wants all of it
// at once.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "base/io/input.h"

namespace pe {

/// Do these first bytes of an input begin gzip data?
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
  /// Several gzip files one behind the other are one.  Throws Error if the input cannot be read.
  std::size_t read(std::span<std::byte> into);

  /// Why reading stopped early; empty if it did not.
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

}  // namespace pe

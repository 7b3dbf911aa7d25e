// Bounds-checked reading of binary input.
//
// ByteReader reads every byte of a stream, an ELF file or a section.  It compares each size with
// the bytes that are left before it reads any.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string_view>
#include <type_traits>

namespace pe {

using Bytes = std::span<const std::byte>;

template <typename T>
concept TriviallyCopyable = std::is_trivially_copyable_v<T>;

class ByteReader {
 public:
  explicit ByteReader(Bytes bytes) noexcept : left_(bytes) {}

  /// Returns the next T in host order.  Returns nullopt and does not advance if too few bytes are
  /// left.
  template <TriviallyCopyable T>
  std::optional<T> take() noexcept {
    if (left_.size() < sizeof(T))
      return std::nullopt;
    T value;
    std::memcpy(&value, left_.data(), sizeof value);
    left_ = left_.subspan(sizeof value);
    return value;
  }

  /// Returns the next `size` bytes.  Returns nullopt and does not advance if fewer are left.
  std::optional<Bytes> take_bytes(std::uint64_t size) noexcept {
    if (size > left_.size())
      return std::nullopt;
    const Bytes taken = left_.first(static_cast<std::size_t>(size));
    left_ = left_.subspan(static_cast<std::size_t>(size));
    return taken;
  }

  /// Skips `count` elements of `size` bytes each.  Returns false and does not advance if they do
  /// not fit, also if their product would overflow.
  bool skip(std::uint64_t count, std::uint64_t size = 1) noexcept {
    if (size != 0 && count > left_.size() / size)
      return false;
    left_ = left_.subspan(static_cast<std::size_t>(count * size));
    return true;
  }

  /// Returns the next NUL-terminated string, without its NUL.  Returns nullopt and does not advance
  /// if no NUL is left.
  std::optional<std::string_view> take_string() noexcept {
    const void* nul = left_.empty() ? nullptr : std::memchr(left_.data(), 0, left_.size());
    if (nul == nullptr)
      return std::nullopt;
    const auto* start = reinterpret_cast<const char*>(left_.data());
    const std::string_view text(start,
                                static_cast<std::size_t>(static_cast<const char*>(nul) - start));
    left_ = left_.subspan(text.size() + 1);
    return text;
  }

  [[nodiscard]] Bytes left() const noexcept { return left_; }
  [[nodiscard]] bool empty() const noexcept { return left_.empty(); }

 private:
  Bytes left_;
};

/// Views bytes as text.
inline std::string_view text_of(Bytes bytes) noexcept {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

/// Returns the bytes of a trivially copyable value, for writing.
template <TriviallyCopyable T>
std::string_view bytes_of(const T& value) noexcept {
  return {reinterpret_cast<const char*>(&value), sizeof value};
}

}  // namespace pe

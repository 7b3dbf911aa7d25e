// A copied piece of a thread's stack: its bytes, and the address they were at.
//
// The source of the bytes does not matter here: a sample's dump, a file, our own stack, or a test's
// sixteen words.
// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <optional>

#include "base/byte_reader.h"

namespace pe::unwind {

class StackView {
 public:
  /// `bytes` were at [start_avma, start_avma + size), and are borrowed.  Bytes above
  /// kEndOfUserSpace are left out.  So the sum of an address in the view and a frame's size never
  /// overflows.
  StackView(std::uint64_t start_avma, Bytes bytes) noexcept
      : start_(std::min(start_avma, kEndOfUserSpace)),
        end_(start_ + std::min<std::uint64_t>(bytes.size(), kEndOfUserSpace - start_)),
        bias_(reinterpret_cast<std::uint64_t>(bytes.data()) - start_) {}

  [[nodiscard]] std::uint64_t start() const noexcept { return start_; }
  [[nodiscard]] std::uint64_t end() const noexcept { return end_; }

  /// Whether all 8 bytes at `avma` are in the view.
  [[nodiscard]] bool has_word(std::uint64_t avma) const noexcept {
    return avma >= start_ && avma <= end_ && end_ - avma >= sizeof(std::uint64_t);
  }
  /// Returns the 8 bytes at `avma`, which must be in the view.  `avma` need not be aligned.
  [[nodiscard]] std::uint64_t word(std::uint64_t avma) const noexcept {
    const auto* place =
        reinterpret_cast<const std::byte*>(avma + bias_);  // NOLINT(performance-no-int-to-ptr)
    std::uint64_t value;
    std::memcpy(&value, place, sizeof value);
    return value;
  }
  /// Returns the same, or nullopt if the view does not have these bytes.
  [[nodiscard]] std::optional<std::uint64_t> read(std::uint64_t avma) const noexcept {
    return has_word(avma) ? std::optional(word(avma)) : std::nullopt;
  }

  /// Returns the same stack as if it had been at the place of its copy: bias() is added to
  /// addresses.  This saves inner loops one addition between a frame's size and its return address.
  [[nodiscard]] StackView in_place() const noexcept {
    StackView view = *this;
    view.start_ += bias_;
    view.end_ += bias_;
    view.bias_ = 0;
    return view;
  }
  [[nodiscard]] std::uint64_t bias() const noexcept { return bias_; }

  static constexpr std::uint64_t kEndOfUserSpace = std::uint64_t{1} << 63;

 private:
  std::uint64_t start_, end_;
  std::uint64_t bias_;  ///< distance from an avma to its copy; wraps
};

}  // namespace pe::unwind

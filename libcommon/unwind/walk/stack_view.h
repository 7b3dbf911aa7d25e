// A piece of a thread's stack that somebody copied: bytes and the address they were at.
//
// Where they come from does not matter here: a sample's dump, a file, our own stack, a test's
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
  /// `bytes` stood at [start_avma, start_avma + size); they are borrowed.  What would lie above
  /// kEndOfUserSpace is left out, so that sums of an address in the view and a frame's size never
  /// overflow.
  StackView(std::uint64_t start_avma, Bytes bytes) noexcept
      : start_(std::min(start_avma, kEndOfUserSpace)),
        end_(start_ + std::min<std::uint64_t>(bytes.size(), kEndOfUserSpace - start_)),
        bias_(reinterpret_cast<std::uint64_t>(bytes.data()) - start_) {}

  [[nodiscard]] std::uint64_t start() const noexcept { return start_; }
  [[nodiscard]] std::uint64_t end() const noexcept { return end_; }

  /// Whether the 8 bytes at `avma` are all there.
  [[nodiscard]] bool has_word(std::uint64_t avma) const noexcept {
    return avma >= start_ && avma <= end_ && end_ - avma >= sizeof(std::uint64_t);
  }
  /// The 8 bytes at `avma`, which must be there; it need not be aligned.
  [[nodiscard]] std::uint64_t word(std::uint64_t avma) const noexcept {
    const auto* place =
        reinterpret_cast<const std::byte*>(avma + bias_);  // NOLINT(performance-no-int-to-ptr)
    std::uint64_t value;
    std::memcpy(&value, place, sizeof value);
    return value;
  }
  /// The same, or nullopt where there is nothing.
  [[nodiscard]] std::optional<std::uint64_t> read(std::uint64_t avma) const noexcept {
    return has_word(avma) ? std::optional(word(avma)) : std::nullopt;
  }

  /// The same stack as if it had been where its copy is, and what is added to an address then.
  /// For inner loops: one addition less between a frame's size and its return address.
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
  std::uint64_t bias_;  ///< from an avma to the place of its copy; wraps
};

}  // namespace pe::unwind

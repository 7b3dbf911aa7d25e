// Objects in the heap of a V8: types, fields and strings.
//
// A word is a small integer (its upper half) if its lowest bit is 0, and else the address of an
// object, plus 1, or plus 3 if it is weak.  Everything is untrusted: an object may have been moved
// or freed since its address was read, so each use checks its type.
//
// Source: V8, include/v8-internal.h, src/objects/string.tq.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "languages/common/memory.h"
#include "languages/node/binary.h"

namespace pe::languages {

class V8Heap {
 public:
  V8Heap(Memory& memory, const V8Layout& layout) : memory_(memory), layout_(layout) {}

  static bool is_object(std::uint64_t word) noexcept { return (word & 1U) != 0; }
  static bool is_strong(std::uint64_t word) noexcept { return (word & 3U) == 1; }
  static std::uint64_t address(std::uint64_t word) noexcept { return word & ~std::uint64_t{3}; }
  static std::optional<std::int32_t> small_integer(std::uint64_t word) noexcept {
    return (word & 0xffffffffU) == 0 ? std::optional(static_cast<std::int32_t>(word >> 32U))
                                     : std::nullopt;
  }

  /// Returns the word at that offset of an object; nullopt if `word` is none, or unreadable.
  std::optional<std::uint64_t> field(std::uint64_t word, std::uint32_t offset);
  template <typename T>
  std::optional<T> number(std::uint64_t word, std::uint32_t offset) {
    return is_object(word) ? memory_.value<T>(address(word) + offset) : std::nullopt;
  }
  /// Returns the number of an object's type.
  std::optional<std::uint32_t> type(std::uint64_t word);
  bool has_type(std::uint64_t word, std::uint32_t expected) { return type(word) == expected; }
  bool is_string(std::uint64_t word);

  /// Returns an element of a FixedArray or one of its kind.
  std::optional<std::uint64_t> element(std::uint64_t array, std::uint32_t index);
  /// Returns the bytes of a ByteArray or one of its kind, at most `most`.
  std::optional<std::vector<std::byte>> bytes(std::uint64_t array, std::size_t most);

  /// Returns at least the first characters of a string in UTF-8; nullopt if it is none.
  std::optional<std::string> text(std::uint64_t word);

  /// The characters of a string that are in one piece.
  struct Characters {
    std::uint64_t avma = 0;
    std::uint32_t length = 0;
    bool has_two_bytes = false;  ///< each
    bool operator==(const Characters&) const = default;
  };
  /// Returns nullopt if they are in several pieces, or unreadable.
  std::optional<Characters> characters(std::uint64_t word);

  [[nodiscard]] const V8Layout& layout() const noexcept { return layout_; }
  [[nodiscard]] Memory& memory() noexcept { return memory_; }

 private:
  std::optional<std::uint64_t> refers_to(std::uint64_t word, std::uint32_t shape,
                                         std::uint64_t& offset);
  bool append(std::string& out, const Characters& piece);

  Memory& memory_;
  const V8Layout& layout_;
};

}  // namespace pe::languages

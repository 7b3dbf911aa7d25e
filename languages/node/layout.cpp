// SPDX-License-Identifier: MIT
#include "languages/node/layout.h"

#include <algorithm>
#include <span>

#include "base/utf8.h"

namespace pe::languages {
namespace {

constexpr std::uint32_t kArrayLength = 8, kArrayData = 16;

// Bits of a string's type, and its parts.
constexpr std::uint32_t kFirstOther = 0x80, kOneByte = 8, kShape = 7;
enum V8Shape : std::uint32_t { kSequence = 0, kCons = 1, kExternal = 2, kSliced = 3, kThin = 5 };
constexpr std::uint32_t kStringLength = 12, kStringData = 16, kStringSecond = 24;
/// Of an external string: where it keeps a pointer to the characters of its resource.
constexpr std::uint32_t kExternalData = 24;
constexpr std::uint32_t kUncached = 16;  // a bit: it does not keep that pointer

constexpr std::size_t kMostV8TextBytes = 1000, kMostV8Pieces = 64;

/// Appends UTF-16.
void append_utf16(std::string& out, std::span<const std::uint16_t> units) {
  for (std::size_t i = 0; i < units.size(); ++i) {
    const std::uint32_t unit = units[i];
    const bool is_pair =
        (unit & 0xfc00U) == 0xd800 && i + 1 < units.size() && (units[i + 1] & 0xfc00U) == 0xdc00;
    append_utf8(out, is_pair ? 0x10000 + ((unit & 0x3ffU) << 10U) + (units[++i] & 0x3ffU) : unit);
  }
}

}  // namespace

std::optional<std::uint64_t> V8Heap::field(std::uint64_t word, std::uint32_t offset) {
  return is_object(word) ? memory_.pointer(address(word) + offset) : std::nullopt;
}

std::optional<std::uint32_t> V8Heap::type(std::uint64_t word) {
  const auto map = field(word, 0);
  if (!map || !is_strong(*map))
    return std::nullopt;
  const auto type = number<std::uint16_t>(*map, layout_.map_type);
  return type ? std::optional<std::uint32_t>(*type) : std::nullopt;
}

bool V8Heap::is_string(std::uint64_t word) {
  const auto kind = type(word);
  return kind && *kind < kFirstOther;
}

std::optional<std::uint64_t> V8Heap::element(std::uint64_t array, std::uint32_t index) {
  const auto length = small_integer(field(array, kArrayLength).value_or(1));
  if (!length || *length < 0 || index >= static_cast<std::uint32_t>(*length))
    return std::nullopt;
  return memory_.pointer(address(array) + kArrayData + std::uint64_t{index} * sizeof array);
}

std::optional<std::vector<std::byte>> V8Heap::bytes(std::uint64_t array, std::size_t most) {
  const auto length = small_integer(field(array, kArrayLength).value_or(1));
  if (!length || *length < 0)
    return std::nullopt;
  std::vector<std::byte> content(std::min<std::size_t>(static_cast<std::size_t>(*length), most));
  if (!memory_.read(address(array) + kArrayData, content))
    return std::nullopt;
  return content;
}

/// Returns the string that has the characters of a string that is not a sequence of them, and adds
/// to `offset` where they start; nullopt if they are in several pieces.
std::optional<std::uint64_t> V8Heap::refers_to(std::uint64_t word, std::uint32_t shape,
                                               std::uint64_t& offset) {
  const auto second = field(word, kStringSecond);
  if (shape == kCons) {  // flat: all of it is in the first part
    const auto rest = second ? number<std::uint32_t>(*second, kStringLength) : std::nullopt;
    if (rest != 0U)
      return std::nullopt;
  } else if (shape == kSliced) {
    const auto from = small_integer(second.value_or(1));
    if (!from || *from < 0)
      return std::nullopt;
    offset += static_cast<std::uint64_t>(*from);
  } else if (shape != kThin) {
    return std::nullopt;
  }
  return field(word, kStringData);
}

std::optional<V8Heap::Characters> V8Heap::characters(std::uint64_t word) {
  constexpr int kMostSteps = 8;
  std::optional<std::uint32_t> length;
  std::uint64_t offset = 0;
  for (int i = 0; i < kMostSteps; ++i) {
    const auto kind = type(word);
    const auto whole = number<std::uint32_t>(word, kStringLength);
    if (!kind || *kind >= kFirstOther || !whole)
      return std::nullopt;
    // That of a slice, which is shorter than its parent.
    length = std::min(length.value_or(*whole), *whole);
    const bool has_two_bytes = (*kind & kOneByte) == 0;
    const std::uint64_t skipped = offset * (has_two_bytes ? 2 : 1);
    const std::uint32_t shape = *kind & kShape;
    if (shape == kSequence)
      return Characters{address(word) + kStringData + skipped, *length, has_two_bytes};
    if (shape == kExternal) {
      const auto data = field(word, kExternalData);
      return data && (*kind & kUncached) == 0
                 ? std::optional(Characters{*data + skipped, *length, has_two_bytes})
                 : std::nullopt;
    }
    const auto next = refers_to(word, shape, offset);
    if (!next)
      return std::nullopt;
    word = *next;
  }
  return std::nullopt;
}

bool V8Heap::append(std::string& out, const Characters& piece) {
  const std::size_t room = kMostV8TextBytes - std::min(kMostV8TextBytes, out.size());
  const std::size_t count = std::min<std::size_t>(piece.length, room);
  if (piece.has_two_bytes) {
    std::vector<std::uint16_t> units(count);
    if (!memory_.read(piece.avma, std::as_writable_bytes(std::span(units))))
      return false;
    append_utf16(out, units);
    return true;
  }
  std::string bytes(count, '\0');  // in Latin 1
  if (!memory_.read(piece.avma, std::as_writable_bytes(std::span(bytes))))
    return false;
  for (const char byte : bytes)
    append_utf8(out, static_cast<unsigned char>(byte));
  return true;
}

std::optional<std::string> V8Heap::text(std::uint64_t word) {
  if (!is_string(word))
    return std::nullopt;
  std::string out;
  std::vector<std::uint64_t> left = {word};  // the next one is the last
  for (std::size_t pieces = 0; !left.empty() && out.size() < kMostV8TextBytes; ++pieces) {
    const std::uint64_t next = left.back();
    left.pop_back();
    if (const auto piece = characters(next)) {
      if (!append(out, *piece))
        return std::nullopt;
      continue;
    }
    const auto kind = type(next);
    const auto first = field(next, kStringData);
    const auto second = field(next, kStringSecond);
    if (!kind || *kind >= kFirstOther || (*kind & kShape) != kCons || !first || !second ||
        pieces >= kMostV8Pieces)
      return std::nullopt;
    left.push_back(*second);
    left.push_back(*first);
  }
  return out;
}

}  // namespace pe::languages

// Reads numbers from an interpreter's memory, at a sample: allocates nothing and takes no lock.
//
// The memory is an object with `bool read(std::uint64_t avma, std::span<std::byte> into)`, which
// returns false if a part is unreadable.
// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace pe::languages {

/// Returns the number at `avma`; 0 if it is unreadable.
template <typename T, typename M>
T number_at(M& memory, std::uint64_t avma) {
  std::array<std::byte, sizeof(T)> bytes;
  T value = 0;
  if (memory.read(avma, bytes))
    std::memcpy(&value, bytes.data(), sizeof value);
  return value;
}

/// Returns the pointer at `avma`; 0 if it is unreadable.
template <typename M>
std::uint64_t pointer_at(M& memory, std::uint64_t avma) {
  return number_at<std::uint64_t>(memory, avma);
}

}  // namespace pe::languages

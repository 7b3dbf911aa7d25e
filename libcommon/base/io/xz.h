// Bytes made large again that were compressed by xz, as mini debug information is.
//
// The format says nothing that can be believed about the size: 1 MB can become 7 GB.  So the caller
// says what it bears.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/byte_reader.h"

namespace pe {

/// What the .xz stream that `bytes` begin with holds.  nullopt if it is damaged or cut off, holds
/// more than `limit_bytes`, or was made with a dictionary larger than `xz -9` has (64 MiB).
/// Memory: the result, up to twice while it grows, and the dictionary.
std::optional<std::vector<std::byte>> unxz(Bytes bytes, std::uint64_t limit_bytes);

}  // namespace pe

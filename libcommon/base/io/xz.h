// Decompresses xz data, such as mini debug information.
//
// The format has no reliable expanded size: 1 MB can become 7 GB.  So the caller sets a limit.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/byte_reader.h"

namespace pe {

/// Returns the content of the .xz stream at the start of `bytes`.  Returns nullopt if the stream is
/// damaged or cut off, holds more than `limit_bytes`, or needs a dictionary larger than that of
/// `xz -9` (64 MiB).  Memory: the result, up to twice while it grows, and the dictionary.
std::optional<std::vector<std::byte>> unxz(Bytes bytes, std::uint64_t limit_bytes);

}  // namespace pe

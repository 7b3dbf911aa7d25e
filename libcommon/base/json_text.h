// Encodes text for JSON.
// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <string_view>

namespace pe {

/// Returns a JSON string with its quotes (RFC 8259).  Bytes that are not UTF-8 become U+FFFD.
std::string json_text(std::string_view text);

}  // namespace pe

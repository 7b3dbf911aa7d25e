// Encodes bytes as base64 (RFC 4648, section 4), which is valid anywhere in XML.
// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <string_view>

namespace pe::painting {

/// Appends `bytes` as base64, padded with "=".
void append_base64(std::string& out, std::string_view bytes);

}  // namespace pe::painting

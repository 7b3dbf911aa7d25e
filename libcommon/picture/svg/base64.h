// Bytes as text that may stand anywhere in XML: base64, RFC 4648, section 4.
// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <string_view>

namespace pe::picture {

/// Appends `bytes`, padded with "=".
void append_base64(std::string& out, std::string_view bytes);

}  // namespace pe::picture

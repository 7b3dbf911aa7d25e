// Text as JSON has it.
// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <string_view>

namespace pe {

/// A JSON string with its quotes (RFC 8259); bytes that are no UTF-8 become U+FFFD.
std::string json_text(std::string_view text);

}  // namespace pe

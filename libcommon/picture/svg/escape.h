// Text of unknown origin as XML that every parser takes, and that says nothing
// but itself: no markup, no script.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace pe::picture {

/// Appends `text` so that it may stand between tags and in a quoted attribute.
/// Control characters (a tab becomes a blank), bytes that are not UTF-8 and
/// what XML 1.0 does not allow become U+FFFD; returns how many did.  With `as_ascii` all
/// that is not ASCII is written as a character reference.
std::size_t append_escaped(std::string& out, std::string_view text, bool as_ascii = false);

/// As append_escaped(), but markup characters stay: for what is not read as XML, such as a
/// comment, but must show the same characters.
std::size_t append_clean(std::string& out, std::string_view text, bool as_ascii = false);

}  // namespace pe::picture

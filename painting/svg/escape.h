// Escapes untrusted text as XML that every parser accepts.  The result contains no markup
// and no script.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace pe::painting {

/// Appends `text`, escaped for use between tags and in quoted attributes.
/// A tab becomes a blank.  Other control characters, bytes that are not UTF-8 and characters
/// that XML 1.0 forbids become U+FFFD; returns how many.  With `as_ascii`, characters
/// beyond ASCII become character references.
std::size_t append_escaped(std::string& out, std::string_view text, bool as_ascii = false);

/// Like append_escaped(), but keeps markup characters: for text that is not parsed as XML, such as
/// a comment, but must show the same characters.
std::size_t append_clean(std::string& out, std::string_view text, bool as_ascii = false);

// Encodes bytes as base64 (RFC 4648, section 4), which is valid anywhere in XML.

/// Appends `bytes` as base64, padded with "=".
void append_base64(std::string& out, std::string_view bytes);

/// Appends the bytes of a base64 text; false if it is not as append_base64() writes it.
bool append_from_base64(std::string& out, std::string_view text);

/// Returns the text of XML that append_escaped() has written.  Keeps other references as they are.
std::string unescaped(std::string_view text);

}  // namespace pe::painting

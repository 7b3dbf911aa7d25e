// Allowed characters: Extensible Markup Language 1.0, fifth edition, 2.2.
// SPDX-License-Identifier: MIT
#include "painting/svg/escape.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <utility>

#include "base/parse_number.h"
#include "base/utf8.h"

namespace pe::painting {
namespace {

constexpr bool is_plain(char c) {
  return c >= ' ' && c <= '~' && c != '&' && c != '<' && c != '>' && c != '"' && c != '\'';
}

/// Returns the replacement of `c`, or an empty text if `c` needs none.
std::string_view reference_for(char32_t c) {
  switch (c) {
    case '&':
      return "&amp;";
    case '<':
      return "&lt;";
    case '>':
      return "&gt;";
    case '"':
      return "&quot;";
    case '\'':
      return "&#39;";
    case '\t':
      return " ";
    default:
      return {};
  }
}

/// XML allows C1 control characters, but they affect a terminal like those of C0.
constexpr bool is_shown(char32_t c) {
  return c >= 0x20 && (c < 0x7F || c > 0x9F) && c != 0xFFFE && c != 0xFFFF;
}

/// How characters are written that cannot be copied unchanged.
struct Escaping {
  bool has_references;  ///< markup characters become references
  bool as_ascii;        ///< characters beyond ASCII become references
};

/// Appends `c` or its replacement.  Returns 1 if U+FFFD replaces it.
std::size_t append_character(std::string& out, const CodePoint& c, Escaping escaping) {
  const bool is_kept = c.is_valid && is_shown(c.value);
  const auto reference = reference_for(c.value);
  if (!reference.empty() && (escaping.has_references || c.value == '\t')) {
    out += reference;
    return 0;
  }
  const char32_t shown = is_kept ? c.value : kReplacement;
  if (escaping.as_ascii && shown > 0x7F) {
    fmt::format_to(std::back_inserter(out), "&#{};", static_cast<std::uint32_t>(shown));
  } else {
    out += is_kept ? c.bytes : "\xEF\xBF\xBD";
  }
  return is_kept ? 0 : 1;
}

std::size_t append(std::string& out, std::string_view text, Escaping escaping) {
  std::size_t replaced = 0;
  while (!text.empty()) {
    std::size_t plain = 0;
    while (plain < text.size() && is_plain(text[plain]))
      ++plain;
    out += text.substr(0, plain);
    text.remove_prefix(plain);
    if (text.empty())
      break;
    replaced += append_character(out, take_code_point(text), escaping);
  }
  return replaced;
}

}  // namespace

std::size_t append_escaped(std::string& out, std::string_view text, bool as_ascii) {
  return append(out, text, {.has_references = true, .as_ascii = as_ascii});
}

std::size_t append_clean(std::string& out, std::string_view text, bool as_ascii) {
  return append(out, text, {.has_references = false, .as_ascii = as_ascii});
}

namespace {

constexpr std::string_view kDigits =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

std::uint32_t byte_at(std::string_view bytes, std::size_t at) {
  return at < bytes.size() ? static_cast<unsigned char>(bytes[at]) : 0;
}

}  // namespace

void append_base64(std::string& out, std::string_view bytes) {
  std::size_t end = out.size();
  out.resize(end + (bytes.size() + 2) / 3 * 4);
  for (std::size_t at = 0; at < bytes.size(); at += 3) {
    const std::uint32_t group =
        byte_at(bytes, at) << 16U | byte_at(bytes, at + 1) << 8U | byte_at(bytes, at + 2);
    out[end] = kDigits[group >> 18U];
    out[end + 1] = kDigits[group >> 12U & 63U];
    out[end + 2] = at + 1 < bytes.size() ? kDigits[group >> 6U & 63U] : '=';
    out[end + 3] = at + 2 < bytes.size() ? kDigits[group & 63U] : '=';
    end += 4;
  }
}

bool append_from_base64(std::string& out, std::string_view text) {
  static constexpr std::uint8_t kNoDigit = 64;
  static constexpr auto kValues = [] {
    std::array<std::uint8_t, 256> values{};
    values.fill(kNoDigit);
    for (std::uint8_t value = 0; value < kDigits.size(); ++value)
      values[static_cast<unsigned char>(kDigits[value])] = value;
    return values;
  }();
  if (text.size() % 4 != 0)
    return false;
  std::size_t padding = 0;
  for (; padding < 2 && text.ends_with('='); ++padding)
    text.remove_suffix(1);
  std::size_t end = out.size();
  out.resize(end + text.size() / 4 * 3 + (text.size() % 4 == 0 ? 0 : text.size() % 4 - 1));
  std::uint32_t group = 0;
  unsigned digits = 0;
  for (const char c : text) {
    const std::uint8_t value = kValues[static_cast<unsigned char>(c)];
    if (value == kNoDigit)
      return false;
    group = group << 6U | value;
    if (++digits == 4) {
      for (const unsigned shift : {16U, 8U, 0U})
        out[end++] = static_cast<char>(group >> shift);
      digits = 0;
    }
  }
  if (digits == 2)
    out[end] = static_cast<char>(group >> 4U);
  for (const unsigned shift : {10U, 2U})
    if (digits == 3)
      out[end++] = static_cast<char>(group >> shift);
  return true;
}

namespace {

/// Returns the character of a reference without '&' and ';'; empty if there is no such character.
std::string character_of(std::string_view reference) {
  constexpr std::pair<std::string_view, char> kNames[] = {
      {"amp", '&'}, {"lt", '<'}, {"gt", '>'}, {"quot", '"'}};
  for (const auto& [name, character] : kNames)
    if (reference == name)
      return {character};
  if (!reference.starts_with('#'))
    return {};
  const auto code = parse_number<std::uint32_t>(reference.substr(1));
  std::string character;
  if (code && is_shown(*code))
    append_utf8(character, *code);
  return character;
}

}  // namespace

std::string unescaped(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const auto start = std::min(text.find('&'), text.size());
    out += text.substr(0, start);
    text.remove_prefix(start);
    const auto end = text.find(';');
    const std::string character = end == text.npos ? "" : character_of(text.substr(1, end - 1));
    if (character.empty()) {
      out += text.substr(0, 1);
      text.remove_prefix(std::min<std::size_t>(1, text.size()));
    } else {
      out += character;
      text.remove_prefix(end + 1);
    }
  }
  return out;
}

}  // namespace pe::painting

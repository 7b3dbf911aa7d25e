// Allowed characters: Extensible Markup Language 1.0, fifth edition, 2.2.
// SPDX-License-Identifier: MIT
#include "svg/escape.h"

#include "svg/utf8.h"

namespace pe::svg {
namespace {

constexpr bool is_plain(char c) {
  return c >= ' ' && c <= '~' && c != '&' && c != '<' && c != '>' && c != '"' && c != '\'';
}

/// What stands for `c`, or an empty text if it may stand for itself.
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

std::string_view blank_for_tab(char32_t c) { return c == '\t' ? " " : std::string_view(); }

/// The controls of C1 are allowed, but do to a terminal what those of C0 do.
constexpr bool is_shown(char32_t c) {
  return c >= 0x20 && (c < 0x7F || c > 0x9F) && c != 0xFFFE && c != 0xFFFF;
}

/// `substitute` names what stands for a character, `is_plain` what needs no look.
template <typename Substitute, typename IsPlain>
std::size_t append_shown(std::string& out, std::string_view text, Substitute substitute,
                         IsPlain is_plain_char) {
  std::size_t replaced = 0;
  while (!text.empty()) {
    std::size_t plain = 0;
    while (plain < text.size() && is_plain_char(text[plain]))
      ++plain;
    out += text.substr(0, plain);
    text.remove_prefix(plain);
    if (text.empty())
      break;
    const CodePoint c = first_code_point(text);
    // U+FFFD itself, when it was in the text, takes three bytes.
    const bool is_valid = c.value != kReplacement || c.size == 3;
    if (const auto reference = substitute(c.value); !reference.empty()) {
      out += reference;
    } else if (is_valid && is_shown(c.value)) {
      out += text.substr(0, c.size);
    } else {
      out += "\xEF\xBF\xBD";
      ++replaced;
    }
    text.remove_prefix(c.size);
  }
  return replaced;
}

}  // namespace

std::size_t append_escaped(std::string& out, std::string_view text) {
  return append_shown(out, text, reference_for, is_plain);
}

std::size_t append_clean(std::string& out, std::string_view text) {
  return append_shown(out, text, blank_for_tab, [](char c) { return c >= ' ' && c <= '~'; });
}

}  // namespace pe::svg

// SPDX-License-Identifier: MIT
#include "base/utf8.h"

#include <utf8cpp/utf8.h>

#include <algorithm>
#include <iterator>

namespace pe {

CodePoint take_beyond_ascii(std::string_view& text) {
  constexpr std::size_t kLongest = 4;
  const char* const first = text.data();
  const bool is_valid = utf8::find_invalid(first, first + std::min(text.size(), kLongest)) != first;
  const char* end = first + 1;
  char32_t value = kReplacement;
  if (is_valid)
    value = utf8::unchecked::next(end = first);
  const CodePoint taken{.value = value, .bytes = {first, end}, .is_valid = is_valid};
  text.remove_prefix(taken.bytes.size());
  return taken;
}

bool is_valid_utf8(std::string_view text) { return utf8::is_valid(text.begin(), text.end()); }

void append_utf8(std::string& text, char32_t value) {
  constexpr char32_t kLast = 0x10ffff, kFirstSurrogate = 0xd800, kLastSurrogate = 0xdfff;
  const bool is_valid = value <= kLast && (value < kFirstSurrogate || value > kLastSurrogate);
  utf8::unchecked::append(is_valid ? value : kReplacement, std::back_inserter(text));
}

std::string made_valid_utf8(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const CodePoint c = take_code_point(text);
    out += c.is_valid ? c.bytes : "\xEF\xBF\xBD";
  }
  return out;
}

}  // namespace pe

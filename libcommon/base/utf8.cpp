// The table of well-formed sequences is The Unicode Standard 15.0, table 3-7.
// SPDX-License-Identifier: MIT
#include "base/utf8.h"

namespace pe {
namespace {

struct Form {
  unsigned first_low, first_high;    // range of the first byte
  unsigned second_low, second_high;  // range of the second
  std::size_t size;
};

constexpr Form kForms[] = {
    {0xC2, 0xDF, 0x80, 0xBF, 2}, {0xE0, 0xE0, 0xA0, 0xBF, 3}, {0xE1, 0xEC, 0x80, 0xBF, 3},
    {0xED, 0xED, 0x80, 0x9F, 3}, {0xEE, 0xEF, 0x80, 0xBF, 3}, {0xF0, 0xF0, 0x90, 0xBF, 4},
    {0xF1, 0xF3, 0x80, 0xBF, 4}, {0xF4, 0xF4, 0x80, 0x8F, 4},
};

/// Decodes `text` as `form`.  The caller has checked the first byte.
CodePoint read_form(const Form& form, std::string_view text) {
  constexpr CodePoint kInvalid{.value = kReplacement, .size = 1};
  if (text.size() < form.size)
    return kInvalid;
  char32_t value = static_cast<unsigned char>(text[0]) & (0xFFU >> (form.size + 1));
  for (std::size_t i = 1; i < form.size; ++i) {
    const unsigned byte = static_cast<unsigned char>(text[i]);
    const unsigned low = i == 1 ? form.second_low : 0x80;
    const unsigned high = i == 1 ? form.second_high : 0xBF;
    if (byte < low || byte > high)
      return kInvalid;
    value = value << 6U | (byte & 0x3FU);
  }
  return {.value = value, .size = form.size};
}

}  // namespace

CodePoint first_code_point(std::string_view text) {
  const unsigned first = static_cast<unsigned char>(text[0]);
  if (first < 0x80)
    return {.value = first, .size = 1};
  for (const Form& form : kForms)
    if (first >= form.first_low && first <= form.first_high)
      return read_form(form, text);
  return {.value = kReplacement, .size = 1};
}

bool is_valid_utf8(std::string_view text) {
  while (!text.empty()) {
    const CodePoint c = first_code_point(text);
    if (c.value == kReplacement && c.size == 1)
      return false;
    text.remove_prefix(c.size);
  }
  return true;
}

std::string made_valid_utf8(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const CodePoint c = first_code_point(text);
    const bool is_valid = c.value != kReplacement || c.size > 1;
    out += is_valid ? text.substr(0, c.size) : std::string_view("\xef\xbf\xbd");
    text.remove_prefix(c.size);
  }
  return out;
}

}  // namespace pe

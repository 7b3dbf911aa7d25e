// Parses any expression and applies it to any name.  A refused expression has a reason, an accepted
// one is bounded.  Plain text matches itself, and a cut leaves a part of the name.
//
// Input: the expression, a newline, the name.
// SPDX-License-Identifier: MIT
#include "folded/build_details.h"

#include <algorithm>
#include <string>
#include <string_view>

#include "flamediff/profiles.h"
#include "fuzz/require.h"

using pe::testing::require;

extern "C" int LLVMFuzzerTestOneInput(const char* data, std::size_t size) {
  const std::string_view text(data, size);
  const std::string expression(text.substr(0, text.find('\n')));
  const std::string_view name = text.substr(std::min(size, expression.size() + 1));
  std::string why;
  const auto parsed = pe::folded::Expression::parse(expression, why);
  require(parsed.has_value() == why.empty());
  if (!parsed)
    return 0;
  const bool is_found = parsed->matches(name);
  require(parsed->matches(name) == is_found);
  constexpr std::string_view kSpecial = "\\^$.|?*+()[]{}";
  const bool is_ascii = std::all_of(text.begin(), text.end(),
                                    [](char c) { return static_cast<unsigned char>(c) < 0x80; });
  if (is_ascii && expression.find_first_of(kSpecial) == std::string::npos)
    require(is_found == (name.find(expression) != std::string_view::npos));
  const std::string given[] = {expression};
  const std::string left = pe::folded::FrameRewriter("strip", given, false).rewrite(name);
  require(left.size() <= name.size() && left.empty() == name.empty());
  if (!is_found)
    require(left == name);
  return 0;
}

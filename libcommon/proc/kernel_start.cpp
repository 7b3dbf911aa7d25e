// SPDX-License-Identifier: MIT
#include "proc/kernel_start.h"

#include <unistd.h>

#include <string_view>

#include "base/parse_number.h"
#include "io/input.h"
#include "io/line_reader.h"

namespace pe::proc {

std::uint64_t kernel_start() {
  // _text is among the first symbols; reading stops there, so that a recorder does not pay for all
  // of them.
  constexpr std::uint64_t kMaxLines = 50'000;
  if (::access("/proc/kallsyms", R_OK) != 0)
    return 0;
  auto input = io::Input::open("/proc/kallsyms", -1);
  io::LineReader lines(input);
  while (const auto line = lines.next()) {
    if (line->ends_with(" T _text"))
      return parse_number<std::uint64_t>(line->substr(0, line->find(' ')), 16).value_or(0);
    if (lines.line_number() > kMaxLines)
      break;
  }
  return 0;
}

}  // namespace pe::proc

// SPDX-License-Identifier: MIT
#include "languages/php/layout.h"

#include <fmt/format.h>

namespace pe::languages {

std::variant<PhpLayout, std::string> php_layout(std::uint64_t version) {
  if ((version & kPhpWithThreads) != 0)
    return fmt::format("PHP {}.{} with threads", version >> 8U & 0xff, version & 0xff);
  switch (version) {
    case 0x0800:
    case 0x0801:
    case 0x0803:
      return PhpLayout{.file = 144, .first_line = 152};
    case 0x0802:
      return PhpLayout{.file = 152, .first_line = 160};
    case 0x0804:
      return PhpLayout{.file = 168, .first_line = 176};
    default:
      return fmt::format("PHP {}.{}", version >> 8U & 0xff, version & 0xff);
  }
}

}  // namespace pe::languages

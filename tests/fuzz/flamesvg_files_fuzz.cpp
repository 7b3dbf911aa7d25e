// The small files that flamesvg takes: what they add to a page is what was checked.
// SPDX-License-Identifier: MIT
#include <cstdlib>
#include <string_view>

#include "flamesvg/name_attributes.h"
#include "flamesvg/palette_map.h"

extern "C" int LLVMFuzzerTestOneInput(const char* data, std::size_t size) {
  const std::string_view text(data, size);
  if (pe::flamesvg::parse_rgb(text) &&
      text.find_first_not_of("rgb(),0123456789") != std::string_view::npos)
    std::abort();
  if (const auto attributes = pe::flamesvg::parse_attributes(text)) {
    for (const auto& a : *attributes) {
      if (a.name.empty() || a.name.find_first_of("<>\"'&= \t\n/") != std::string::npos)
        std::abort();
      if ((a.name[0] == 'o' || a.name[0] == 'O') && (a.name[1] == 'n' || a.name[1] == 'N'))
        std::abort();  // a handler of events
    }
  }
  return 0;
}

// Reads any bytes as the small files that flamesvg accepts.  Only checked text gets into a page;
// each line is used or counted.
// SPDX-License-Identifier: MIT
#include <algorithm>
#include <cstdlib>
#include <string>
#include <string_view>

#include "flamesvg/name_attributes.h"
#include "flamesvg/palette_map.h"
#include "support/memory_input.h"

namespace {

void check_files(std::string_view text) {
  const pe::Fd file = pe::testing::memory_file(text);
  const std::string path = "/proc/self/fd/" + std::to_string(file.get());
  const auto palette = pe::flamesvg::PaletteMap::read(path);
  const auto attributes = pe::flamesvg::NameAttributes::read(path);
  if ((attributes.ignored() == 0) != attributes.first_ignored().empty())
    std::abort();
  std::uint64_t ignored = 0;
  for (std::string_view left = text; !left.empty();) {
    std::string_view line = left.substr(0, left.find('\n'));
    left.remove_prefix(std::min(left.size(), line.size() + 1));
    if (line.ends_with('\r'))
      line.remove_suffix(1);
    const auto arrow = line.rfind("->");
    const bool is_color =
        arrow != line.npos && pe::flamesvg::parse_rgb(line.substr(arrow + 2)).has_value();
    ignored += is_color ? 0 : 1;
    if (is_color && !palette.find(line.substr(0, arrow)))
      std::abort();
  }
  if (palette.ignored_lines() != ignored)
    std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const char* data, std::size_t size) {
  const std::string_view text(data, size);
  check_files(text);
  if (pe::flamesvg::parse_rgb(text) &&
      text.find_first_not_of("rgb(),0123456789") != std::string_view::npos)
    std::abort();
  if (const auto attributes = pe::flamesvg::parse_attributes(text)) {
    for (const auto& a : *attributes) {
      if (a.name.empty() || a.name.find_first_of("<>\"'&= \t\n/") != std::string::npos)
        std::abort();
      if ((a.name[0] == 'o' || a.name[0] == 'O') && (a.name[1] == 'n' || a.name[1] == 'N'))
        std::abort();  // an event handler
    }
  }
  return 0;
}

// SPDX-License-Identifier: MIT
#include "recording/bpf/embedded_code.h"

#include <algorithm>
#include <limits>

#include "objects/image.h"

namespace pe::objects {

EmbeddedCode find_embedded_code(const Image& image) {
  EmbeddedCode code{std::numeric_limits<std::uint64_t>::max(), 0};
  for_each_symbol(image, [&code](std::string_view name, std::uint64_t svma, std::uint64_t bytes) {
    if (!name.starts_with("Builtins_") || bytes == 0 || svma + bytes < svma)
      return;
    code.start = std::min(code.start, svma);
    code.end = std::max(code.end, svma + bytes);
  });
  return code.start < code.end ? code : EmbeddedCode{};
}

}  // namespace pe::objects

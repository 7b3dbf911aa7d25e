// stackfold reads any bytes as a page of flamesvg, and as the call tree in such a page.
// SPDX-License-Identifier: MIT
#include <string>

#include "base/io/compression.h"
#include "fuzz/fold_format.h"
#include "painting/svg/escape.h"

extern "C" int LLVMFuzzerTestOneInput(const char* data, std::size_t size) {
  const std::string_view bytes(data, size);
  pe::testing::fold_as("flamegraph", bytes);
  std::string page = "<svg class=\"flamegraph\"><metadata class=\"tree\">";
  pe::painting::append_base64(page, pe::deflate(bytes, 1));
  pe::testing::fold_as("flamegraph", page + "</metadata></svg>");
  return 0;
}

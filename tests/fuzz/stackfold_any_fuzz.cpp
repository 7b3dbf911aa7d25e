// stackfold recognises the format of any bytes on its standard input.  It prints folded text, or
// reports that it could not.
// SPDX-License-Identifier: MIT
#include <cstdlib>
#include <string_view>

#include "folded/folded_line.h"
#include "stackfold/stackfold.h"
#include "support/run_tool.h"

extern "C" int LLVMFuzzerTestOneInput(const char* data, std::size_t size) {
  const auto result = pe::testing::run_tool(pe::kStackfold, {}, {data, size});
  if (result.status != 0 && (result.status != 1 || result.err.empty()))
    std::abort();
  for (const char c : result.err)
    if (static_cast<unsigned char>(c) < ' ' && c != '\n')
      std::abort();
  // Empty frames of folded text stay unchanged.
  for (std::string_view left = result.out; !left.empty();) {
    const auto end = left.find('\n');
    if (end == left.npos || !pe::folded::parse_folded_line(left.substr(0, end)))
      std::abort();
    left.remove_prefix(end + 1);
  }
  return 0;
}

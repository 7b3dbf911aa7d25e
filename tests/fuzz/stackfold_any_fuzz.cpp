// Any bytes on the standard input of stackfold, whose format it finds out by itself: what it prints
// is folded text, and it says so if it could not.
// SPDX-License-Identifier: MIT
#include <algorithm>
#include <cstdlib>

#include "fuzz/check_folded.h"
#include "stackfold/stackfold.h"
#include "support/run_tool.h"

extern "C" int LLVMFuzzerTestOneInput(const char* data, std::size_t size) {
  const auto result = pe::testing::run_tool(pe::stackfold_main, {}, {data, size});
  if (result.status != 0 && (result.status != 1 || result.err.empty()))
    std::abort();
  for (const char c : result.err)
    if (static_cast<unsigned char>(c) < ' ' && c != '\n')
      std::abort();
  pe::testing::check_folded(
      result.out, static_cast<std::size_t>(std::count(result.out.begin(), result.out.end(), '\n')));
  return 0;
}

// stackfold reads any bytes as a profile of speedscope.
// SPDX-License-Identifier: MIT
#include "fuzz/fold_format.h"

extern "C" int LLVMFuzzerTestOneInput(const char* data, std::size_t size) {
  pe::testing::fold_as("speedscope", {data, size});
  return 0;
}

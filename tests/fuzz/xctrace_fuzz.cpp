// stackfold reads any bytes as the format "xctrace".
// SPDX-License-Identifier: MIT
#include "fuzz/fold_format.h"

extern "C" int LLVMFuzzerTestOneInput(const char* data, std::size_t size) {
  pe::testing::fold_as("xctrace", {data, size});
  return 0;
}

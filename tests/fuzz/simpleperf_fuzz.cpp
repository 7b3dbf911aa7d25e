// stackfold reads any bytes as the format "simpleperf".
// SPDX-License-Identifier: MIT
#include "fuzz/fold_format.h"

extern "C" int LLVMFuzzerTestOneInput(const char* data, std::size_t size) {
  pe::testing::fold_as("simpleperf", {data, size});
  return 0;
}

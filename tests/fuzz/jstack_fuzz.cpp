// stackfold reads any bytes as the format "jstack".
// SPDX-License-Identifier: MIT
#include "fuzz/fold_format.h"

extern "C" int LLVMFuzzerTestOneInput(const char* data, std::size_t size) {
  pe::testing::fold_as("jstack", {data, size});
  return 0;
}

// stackfold reads any bytes as the formats "gdb" and "eu-stack", which have one parser.
// SPDX-License-Identifier: MIT
#include "fuzz/fold_format.h"

extern "C" int LLVMFuzzerTestOneInput(const char* data, std::size_t size) {
  pe::testing::fold_as("gdb", {data, size});
  return 0;
}

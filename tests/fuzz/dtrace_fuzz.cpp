// stackfold reads any bytes as the formats "dtrace" and "bcc", which have one parser.
// SPDX-License-Identifier: MIT
#include "fuzz/fold_format.h"

extern "C" int LLVMFuzzerTestOneInput(const char* data, std::size_t size) {
  pe::testing::fold_as("dtrace", {data, size});
  return 0;
}

// Reads any bytes as the notes of static probes.  Every string of a probe is among the bytes.
// SPDX-License-Identifier: MIT
#include <span>
#include <string_view>

#include "fuzz/require.h"
#include "recording/probes/function_search.h"

extern "C" int LLVMFuzzerTestOneInput(const char* data, std::size_t size) {
  const std::string_view all(data, size);
  for (const bool is_64_bit : {true, false})
    for (const auto& probe : pe::objects::parse_static_probes(std::as_bytes(std::span(data, size)),
                                                              is_64_bit, std::nullopt)) {
      pe::testing::require(!probe.name.empty());
      for (const std::string& text : {probe.provider, probe.name, probe.arguments})
        pe::testing::require(all.find(text) != all.npos);
    }
  return 0;
}

// Reads any bytes as an ELF image of a Node without symbols.  Its builtins are in order, and each
// has code.
// SPDX-License-Identifier: MIT
#include "languages/node/embedded.h"
#include "require.h"

using pe::testing::require;

extern "C" int LLVMFuzzerTestOneInput(const std::byte* data, std::size_t size) {
  const auto result = pe::objects::Image::from_memory({data, data + size});
  const auto* image = std::get_if<pe::objects::Image>(&result);
  if (image == nullptr)
    return 0;
  const pe::languages::EmbeddedV8 embedded(*image);
  (void)embedded.version();
  std::uint64_t end = 0;
  for (const auto& builtin : embedded.builtins()) {
    require(builtin.start >= end && builtin.end > builtin.start);
    end = builtin.end;
  }
  return 0;
}

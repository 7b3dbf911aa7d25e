// Removes build details from any name.  The result is longer only by the dots, is not empty, has no
// new separator, and has no hexadecimal number that could be removed again.
// SPDX-License-Identifier: MIT
#include <cstdlib>
#include <string>
#include <string_view>

#include "folded/build_details.h"

extern "C" int LLVMFuzzerTestOneInput(const char* data, std::size_t size) {
  const std::string_view name(data, size);
  const std::string once = pe::folded::without_build_details(name);
  if (once.empty() != name.empty() || once.size() > 3 * name.size() + 8)
    std::abort();
  for (const char separator : {';', '\n'})
    if (once.find(separator) != std::string::npos && name.find(separator) == std::string_view::npos)
      std::abort();
  const std::string twice = pe::folded::without_hex_numbers(once);
  if (twice != once)
    std::abort();
  return 0;
}

// Demangles any name.  The result has a bounded size; a name that is not mangled is returned
// unchanged.
// Run it with -timeout=2: no name may take long.
// SPDX-License-Identifier: MIT
#include <cstdlib>

#include "names/demangle.h"

extern "C" int LLVMFuzzerTestOneInput(const char* data, std::size_t size) {
  const std::string_view mangled(data, size);
  for (const char* prefix : {"", "_Z", "_R", "_D"}) {
    const std::string name = prefix + std::string(mangled);
    const std::string result = pe::names::demangle(name);
    if (result.empty() != name.empty() ||
        result.size() > pe::names::kMaxDemangledBytes + name.size())
      std::abort();
    if (!name.starts_with('_') && result != name)
      std::abort();
  }
  return 0;
}

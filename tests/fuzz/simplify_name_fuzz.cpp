// Simplifies any name.  The result is not longer, cannot be simplified further, and has brackets in
// pairs if the name has.
// SPDX-License-Identifier: MIT
#include <array>
#include <cstdlib>

#include "names/demangle.h"
#include "pe-symbolize/simplify_name.h"

namespace {

/// For each kind of bracket, how many more open than close.  `<` and `>` can also be operators, so
/// they are not counted.
std::array<long, 3> balance(std::string_view name) {
  constexpr std::string_view kOpen = "([{", kClose = ")]}";
  std::array<long, 3> sums{};
  for (const char c : name) {
    if (const auto at = kOpen.find(c); at != std::string_view::npos)
      ++sums.at(at);
    if (const auto at = kClose.find(c); at != std::string_view::npos)
      --sums.at(at);
  }
  return sums;
}

void check(const std::string& name) {
  const std::string simple = pe::symbolize::simplify_name(name);
  if (simple.size() > name.size() || simple.empty() != name.empty() ||
      balance(simple) != balance(name) || pe::symbolize::simplify_name(simple) != simple)
    std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const char* data, std::size_t size) {
  const std::string name(data, size);
  check(name);
  check(pe::names::demangle("_Z" + name));
  return 0;
}

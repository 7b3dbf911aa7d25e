// What a fuzz target promises of any input.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdlib>

namespace pe::testing {

/// Ends the program, as a fuzzer notices it, where the property does not hold.
inline void require(bool holds) {
  if (!holds)
    std::abort();
}

}  // namespace pe::testing

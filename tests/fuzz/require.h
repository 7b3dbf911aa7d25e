// Checks a property that a fuzz target promises for any input.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdlib>

namespace pe::testing {

/// Aborts if the property does not hold, so that the fuzzer reports it.
inline void require(bool holds) {
  if (!holds)
    std::abort();
}

}  // namespace pe::testing

// Test cases whose size takes seconds with sanitizers.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdlib>
#include <functional>
#include <string_view>

#include <boost/test/unit_test.hpp>

namespace pe::tests {

/// Whether this case, of those that cost(), is in the fifth that scripts/test selects by PE_SLICE.
inline bool is_in_slice(boost::unit_test::test_unit_id id) {
  constexpr std::size_t kSlices = 5;
  if (std::getenv("PE_ALL") != nullptr)
    return true;
  const char* slice = std::getenv("PE_SLICE");
  const auto& name = boost::unit_test::framework::get<boost::unit_test::test_unit>(id).p_name.get();
  return std::hash<std::string_view>()(name) % kSlices ==
         (slice != nullptr ? std::strtoul(slice, nullptr, 10) : 0);
}

/// A decorator: one of five changes runs the case, and all do with PE_ALL.
inline auto costly() { return boost::unit_test::precondition(is_in_slice); }

}  // namespace pe::tests

// SPDX-License-Identifier: MIT
#include "unwind/function_ranges.h"

#include <boost/test/unit_test.hpp>

#include "objects/symbol_table.h"

using pe::objects::Image;
using pe::unwind::FunctionRanges;

BOOST_AUTO_TEST_SUITE(function_ranges)

// Needs the symbols of this program's functions, so it fails after strip(1).
BOOST_AUTO_TEST_CASE(functions_begin_where_their_symbols_do) {
  const auto opened = Image::open("/proc/self/exe");
  const auto& image = std::get<Image>(opened);
  const FunctionRanges ranges(image);
  const pe::objects::SymbolTable symbols(image);
  std::size_t same = 0;
  std::size_t covered = 0;
  const auto* text = image.section(".text");
  BOOST_REQUIRE(text != nullptr);
  constexpr std::uint64_t kStride = 64;
  for (std::uint64_t svma = text->svma; svma < text->svma + text->bytes; svma += kStride) {
    const auto symbol = symbols.find(svma);
    const auto start = ranges.start_of(svma);
    if (!symbol || !start)
      continue;
    ++covered;
    same += *start == symbol->svma ? 1 : 0;
  }
  BOOST_TEST(covered > 1000u);
  BOOST_TEST(same * 100 >= covered * 98);  // ".cold" parts differ: their symbols are not functions
}

BOOST_AUTO_TEST_CASE(nothing_covers_what_lies_outside_of_the_code) {
  const auto opened = Image::open("/proc/self/exe");
  const FunctionRanges ranges(std::get<Image>(opened));
  BOOST_TEST(!ranges.start_of(0));
  BOOST_TEST(!ranges.start_of(~std::uint64_t{0}));
  BOOST_TEST(!FunctionRanges().start_of(0x1000));
}

BOOST_AUTO_TEST_SUITE_END()

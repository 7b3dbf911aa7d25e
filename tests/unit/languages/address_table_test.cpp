// SPDX-License-Identifier: MIT
#include "languages/common/interpreter.h"

#include <boost/test/unit_test.hpp>

#include <cstdint>
#include <string_view>

#include "objects/image.h"

using pe::objects::Image;

// A function with a table of 3000 addresses of its code, between tables of other functions.
asm(R"(
  .pushsection .text
  .type tabled_loop, @function
tabled_loop:
  .cfi_startproc
  nop
  .rept 3
  ret
  .endr
  .cfi_endproc
  .size tabled_loop, . - tabled_loop
  .type tabled_other, @function
tabled_other:
  .cfi_startproc
  .rept 8
  ret
  .endr
  .cfi_endproc
  .size tabled_other, . - tabled_other
  .popsection
  .pushsection .data.rel.ro, "aw"
  .p2align 3
tabled_words:
  .rept 1500
  .quad tabled_other + 2
  .endr
  .rept 1500
  .quad tabled_loop + 1
  .quad tabled_loop + 3
  .endr
  .quad 0
  .rept 1500
  .quad tabled_other + 1
  .endr
  .popsection
)");
extern "C" char tabled_loop;

BOOST_AUTO_TEST_SUITE(address_table)

BOOST_AUTO_TEST_CASE(the_longest_table_leads_to_its_function) {
  BOOST_TEST(&tabled_loop != nullptr);  // keeps the section in the program
  const auto opened = Image::open("/proc/self/exe");
  const Image& image = std::get<Image>(opened);
  std::uint64_t start = 0, end = 0;
  pe::objects::for_each_symbol(
      image,
      [&](std::string_view name, std::uint64_t svma, std::uint64_t bytes) {
        if (name == "tabled_loop") {
          start = svma;
          end = svma + bytes;
        }
      },
      std::uint64_t{1} << 30U);
  const auto found = pe::languages::function_of_longest_table(image, 3000);
  BOOST_TEST_REQUIRE(found.has_value());
  BOOST_TEST(start != 0U);
  BOOST_TEST(found->start_svma == start);
  BOOST_TEST(found->end_svma == end);
}

BOOST_AUTO_TEST_CASE(a_table_that_is_too_short_is_none) {
  const auto opened = Image::open("/proc/self/exe");
  BOOST_TEST(!pe::languages::function_of_longest_table(std::get<Image>(opened), 3001));
}

BOOST_AUTO_TEST_SUITE_END()

// SPDX-License-Identifier: MIT
#include "languages/common/interpreter.h"

#include <boost/test/unit_test.hpp>

#include <map>
#include <string>

#include "objects/image.h"

using pe::objects::Image;
using pe::unwind::FunctionRanges;

// A function with a part elsewhere, which has another part; it also jumps to another function.
asm(R"(
  .pushsection .text
  .type moved_whole, @function
moved_whole:
  .cfi_startproc
  push %rbp
  .cfi_def_cfa_offset 16
  .cfi_offset 6, -16
  jne moved_first
moved_back:
  pop %rbp
  .cfi_def_cfa_offset 8
  jmp moved_other
  .cfi_endproc
  .size moved_whole, . - moved_whole
  .type moved_other, @function
moved_other:
  .cfi_startproc
  ret
  .cfi_endproc
  .size moved_other, . - moved_other
  .type moved_first, @function
moved_first:
  .cfi_startproc
  .cfi_def_cfa_offset 16
  .cfi_offset 6, -16
  nop
  jmp moved_second
  .cfi_endproc
  .size moved_first, . - moved_first
  .type moved_second, @function
moved_second:
  .cfi_startproc
  .cfi_def_cfa_offset 16
  .cfi_offset 6, -16
  jmp moved_back
  .cfi_endproc
  .size moved_second, . - moved_second
  .popsection
)");
extern "C" char moved_whole;

namespace {

const Image& own_image() {
  static const auto kOpened = Image::open("/proc/self/exe");
  return std::get<Image>(kOpened);
}

std::map<std::string, FunctionRanges::Range> ranges_by_name() {
  BOOST_TEST(&moved_whole != nullptr);  // keeps the section in the program
  std::map<std::string, FunctionRanges::Range> found;
  pe::objects::for_each_symbol(
      own_image(),
      [&](std::string_view name, std::uint64_t svma, std::uint64_t bytes) {
        if (name.starts_with("moved_"))
          found[std::string(name)] = {svma, svma + bytes};
      },
      std::uint64_t{1} << 30U);
  return found;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(moved_parts)

BOOST_AUTO_TEST_CASE(parts_are_found_by_jumps_and_other_functions_are_none) {
  const auto ranges = ranges_by_name();
  const auto parts = pe::languages::moved_parts(own_image(), ranges.at("moved_whole"));
  BOOST_REQUIRE(parts.size() == 2u);
  BOOST_TEST(parts[0].start_svma == ranges.at("moved_first").start_svma);
  BOOST_TEST(parts[0].end_svma == ranges.at("moved_first").end_svma);
  BOOST_TEST(parts[1].start_svma == ranges.at("moved_second").start_svma);
}

BOOST_AUTO_TEST_CASE(code_that_is_not_there_has_no_parts) {
  BOOST_TEST(pe::languages::moved_parts(own_image(), {0, 0x1000}).empty());
  BOOST_TEST(
      pe::languages::moved_parts(own_image(), {~std::uint64_t{0} - 1, ~std::uint64_t{0}}).empty());
  BOOST_TEST(pe::languages::moved_parts(own_image(), {0x2000, 0x1000}).empty());
}

BOOST_AUTO_TEST_SUITE_END()

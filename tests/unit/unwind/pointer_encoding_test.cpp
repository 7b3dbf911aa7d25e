// SPDX-License-Identifier: MIT
#include "unwind/cfi/pointer_encoding.h"

#include <dwarf.h>

#include <boost/test/unit_test.hpp>
#include <string>

#include "support/cfi_builder.h"

BOOST_AUTO_TEST_SUITE(pointer_encoding)

namespace {

using pe::testing::code;
using namespace pe::unwind;

constexpr std::uint64_t kHere = 0x1000;
constexpr std::uint64_t kData = 0x8000;

std::optional<std::uint64_t> pointer(const std::string& bytes, int encoding,
                                     std::uint64_t here = kHere) {
  AddressedReader in(std::as_bytes(std::span(bytes)), here);
  const auto value = read_pointer(in, static_cast<std::uint8_t>(encoding), kData);
  if (value)
    BOOST_TEST(in.empty());
  return value;
}

std::optional<std::int64_t> sleb(const std::string& bytes) {
  pe::ByteReader in(std::as_bytes(std::span(bytes)));
  return read_sleb128(in);
}

std::optional<std::uint64_t> uleb(const std::string& bytes) {
  pe::ByteReader in(std::as_bytes(std::span(bytes)));
  return read_uleb128(in);
}

}  // namespace

BOOST_AUTO_TEST_CASE(leb128_numbers_are_those_of_the_standard) {  // DWARF 5, figures 27 and 28
  BOOST_CHECK(uleb(code({2})) == 2U);
  BOOST_CHECK(uleb(code({0x80, 1})) == 128U);
  BOOST_CHECK(uleb(code({57 + 0x80, 100})) == 12857U);
  BOOST_CHECK(sleb(code({0x7e})) == -2);
  BOOST_CHECK(sleb(code({0x7f + 0x80, 0})) == 127);
  BOOST_CHECK(sleb(code({0x80, 0x7f})) == -128);
  BOOST_CHECK(uleb(std::string(9, '\xff') + '\x01') == ~std::uint64_t{0});
}

BOOST_AUTO_TEST_CASE(leb128_numbers_that_do_not_end_are_refused) {
  BOOST_CHECK(!uleb(""));
  BOOST_CHECK(!uleb(code({0x80})));
  BOOST_CHECK(!sleb(std::string(100, '\xff')));
}

BOOST_AUTO_TEST_CASE(every_width_is_read_and_extended_as_its_sign_says) {
  BOOST_CHECK(pointer(code({0xfe, 0xff}), DW_EH_PE_udata2) == 0xfffeU);
  BOOST_CHECK(pointer(code({0xfe, 0xff}), DW_EH_PE_sdata2) == std::uint64_t(-2));
  BOOST_CHECK(pointer(code({0xfe, 0xff, 0xff, 0xff}), DW_EH_PE_udata4) == 0xfffffffeU);
  BOOST_CHECK(pointer(code({0xfe, 0xff, 0xff, 0xff}), DW_EH_PE_sdata4) == std::uint64_t(-2));
  BOOST_CHECK(pointer(code({1, 0, 0, 0, 0, 0, 0, 1}), DW_EH_PE_absptr) == 0x100000000000001U);
  BOOST_CHECK(pointer(code({0x80, 1}), DW_EH_PE_uleb128) == 128U);
  BOOST_CHECK(pointer(code({0x7e}), DW_EH_PE_sleb128) == std::uint64_t(-2));
}

BOOST_AUTO_TEST_CASE(pointers_count_from_themselves_or_from_the_data) {
  const std::string minus_two = code({0xfe, 0xff, 0xff, 0xff});
  BOOST_CHECK(pointer(minus_two, DW_EH_PE_pcrel | DW_EH_PE_sdata4) == kHere - 2);
  BOOST_CHECK(pointer(minus_two, DW_EH_PE_datarel | DW_EH_PE_sdata4) == kData - 2);
  BOOST_CHECK(pointer(std::string(3, 'x') + code({5, 0, 0, 0, 0, 0, 0, 0}), DW_EH_PE_aligned,
                      kHere + 5) == 5U);
}

BOOST_AUTO_TEST_CASE(pointers_that_cannot_be_had_are_refused) {
  const std::string eight(8, '\1');
  BOOST_CHECK(!pointer(eight, DW_EH_PE_omit));
  BOOST_CHECK(!pointer(eight, DW_EH_PE_indirect | DW_EH_PE_pcrel | DW_EH_PE_sdata4));
  BOOST_CHECK(!pointer(eight, DW_EH_PE_textrel));
  BOOST_CHECK(!pointer(eight, DW_EH_PE_funcrel));
  BOOST_CHECK(!pointer(eight, 0x05));
  BOOST_CHECK(!pointer(code({1, 2, 3}), DW_EH_PE_udata4));
  BOOST_CHECK(!pointer(code({1, 2, 3}), DW_EH_PE_aligned, kHere + 1));
}

BOOST_AUTO_TEST_SUITE_END()

// SPDX-License-Identifier: MIT
#include "base/byte_reader.h"

#include <array>
#include <boost/test/unit_test.hpp>

using pe::ByteReader;

namespace {
constexpr std::array<char, 8> kText = {'a', 'b', '\0', 'c', 1, 0, 0, 0};
pe::Bytes text_bytes() { return std::as_bytes(std::span(kText)); }
}  // namespace

BOOST_AUTO_TEST_SUITE(byte_reader)

BOOST_AUTO_TEST_CASE(takes_values_and_strings_in_turn) {
  ByteReader reader(text_bytes());
  BOOST_TEST(reader.take_string().value() == "ab");
  BOOST_TEST(reader.take<char>().value() == 'c');
  BOOST_TEST(reader.take<std::uint32_t>().value() == 1u);
  BOOST_TEST(reader.empty());
}

BOOST_AUTO_TEST_CASE(does_not_move_when_too_little_is_left) {
  ByteReader reader(text_bytes().first(7));
  BOOST_TEST(!reader.take<std::uint64_t>().has_value());
  BOOST_TEST(!reader.take_bytes(8).has_value());
  BOOST_TEST(reader.left().size() == 7u);
}

BOOST_AUTO_TEST_CASE(a_string_without_its_end_is_none) {
  ByteReader reader(text_bytes().subspan(3, 1));
  BOOST_TEST(!reader.take_string().has_value());
  BOOST_TEST(reader.left().size() == 1u);
  ByteReader empty{pe::Bytes{}};
  BOOST_TEST(!empty.take_string().has_value());
}

BOOST_AUTO_TEST_CASE(refuses_counts_whose_product_overflows) {
  ByteReader reader(text_bytes());
  BOOST_TEST(!reader.skip(UINT64_MAX / 4, 8));
  BOOST_TEST(!reader.skip(9));
  BOOST_TEST(reader.skip(2, 4));
  BOOST_TEST(reader.empty());
}

BOOST_AUTO_TEST_SUITE_END()

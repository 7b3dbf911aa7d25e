// SPDX-License-Identifier: MIT
#include "base/io/compression.h"

#include <boost/test/unit_test.hpp>

#include <span>
#include <string>

namespace {

using pe::deflate;
using pe::inflate;

/// The `size` bytes that `bytes` inflate to; empty if they do not.
std::string inflated(const std::string& bytes, std::size_t size) {
  std::string out(size, '\0');
  const bool is_whole = inflate(std::as_bytes(std::span(bytes)),
                                std::as_writable_bytes(std::span(out.data(), out.size())));
  return is_whole ? out : "";
}

}  // namespace

BOOST_AUTO_TEST_SUITE(deflated_bytes)

BOOST_AUTO_TEST_CASE(inflates_to_what_it_was) {
  std::string text;
  for (int i = 0; i < 10'000; ++i)
    text += std::to_string(i * 7919 % 1000);
  for (const int level : {1, 6, 12}) {
    const std::string small = deflate(text, level);
    BOOST_TEST(small.size() < text.size() / 2);
    BOOST_TEST((inflated(small, text.size()) == text));
  }
  BOOST_TEST(inflated(deflate("", 6), 0).empty());
}

BOOST_AUTO_TEST_CASE(damaged_cut_and_wrongly_sized_data_is_refused) {
  const std::string text = "some text, some text, some text";
  std::string small = deflate(text, 6);
  BOOST_TEST(inflated(small, text.size()) == text);
  BOOST_TEST(inflated(small, text.size() - 1).empty());
  BOOST_TEST(inflated(small, text.size() + 1).empty());
  BOOST_TEST(inflated(small.substr(0, small.size() - 1), text.size()).empty());
  small[small.size() / 2] ^= 1;
  BOOST_TEST(inflated(small, text.size()).empty());
}

BOOST_AUTO_TEST_CASE(data_of_unknown_size_is_expanded_up_to_a_limit) {
  for (const std::size_t size : {0UL, 1UL, 5000UL, 1'000'000UL}) {
    const std::string text(size, 'x');
    const std::string packed = pe::deflate(text, 6);
    const auto bytes = std::as_bytes(std::span(packed));
    BOOST_TEST((pe::inflate_all(bytes, size) == text));
    BOOST_TEST((pe::inflate_all(bytes, 10 * size + 10) == text));
    if (size > 0)
      BOOST_TEST((pe::inflate_all(bytes, size - 1) == std::nullopt));
    BOOST_TEST((pe::inflate_all(bytes.first(bytes.size() - 1), size) == std::nullopt));
  }
}

BOOST_AUTO_TEST_SUITE_END()

// SPDX-License-Identifier: MIT
#include "io/deflate.h"

#include <libdeflate.h>

#include <boost/test/unit_test.hpp>
#include <string>

namespace {

std::string inflated(const std::string& bytes, std::size_t size) {
  std::string out(size, '\0');
  auto* const inflater = libdeflate_alloc_decompressor();
  const auto result = libdeflate_zlib_decompress(inflater, bytes.data(), bytes.size(), out.data(),
                                                 out.size(), nullptr);
  libdeflate_free_decompressor(inflater);
  BOOST_TEST(result == LIBDEFLATE_SUCCESS);
  return out;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(deflated_bytes)

BOOST_AUTO_TEST_CASE(inflates_to_what_it_was) {
  std::string text;
  for (int i = 0; i < 10'000; ++i)
    text += std::to_string(i * 7919 % 1000);
  for (const int level : {1, 6, 12}) {
    const std::string small = pe::io::deflate(text, level);
    BOOST_TEST(small.size() < text.size() / 2);
    BOOST_TEST((inflated(small, text.size()) == text));
  }
  BOOST_TEST(inflated(pe::io::deflate("", 6), 0).empty());
}

BOOST_AUTO_TEST_SUITE_END()

// SPDX-License-Identifier: MIT
#include "stackfold/gzip.h"

#include <zlib.h>

#include <boost/test/unit_test.hpp>
#include <stdexcept>
#include <string>
#include <utility>

#include "support/memory_input.h"

namespace {

std::string packed(std::string_view text) {
  z_stream zlib{};
  if (::deflateInit2(&zlib, 6, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY) != Z_OK)
    throw std::runtime_error("deflateInit2 failed");
  std::string out(::deflateBound(&zlib, text.size()), '\0');
  std::string in(text);
  zlib.next_in = reinterpret_cast<Bytef*>(in.data());
  zlib.avail_in = static_cast<uInt>(in.size());
  zlib.next_out = reinterpret_cast<Bytef*>(out.data());
  zlib.avail_out = static_cast<uInt>(out.size());
  ::deflate(&zlib, Z_FINISH);
  out.resize(zlib.total_out);
  ::deflateEnd(&zlib);
  return out;
}

/// The text, and the damage that the reader reports.
std::pair<std::string, std::string> unpacked(std::string_view bytes) {
  pe::Input input = pe::testing::memory_input(bytes);
  pe::GzipReader gzip(input);
  std::string text;
  std::byte buffer[100];
  while (const std::size_t n = gzip.read(buffer))
    text.append(reinterpret_cast<const char*>(buffer), n);
  return {text, gzip.damage()};
}

const std::string kManyLetters(100'000, 'x');

}  // namespace

BOOST_AUTO_TEST_SUITE(gzip)

BOOST_AUTO_TEST_CASE(what_was_packed_comes_back) {
  BOOST_TEST((unpacked(packed(kManyLetters)) == std::pair(kManyLetters, std::string())));
  BOOST_TEST((unpacked(packed("")) == std::pair(std::string(), std::string())));
}

BOOST_AUTO_TEST_CASE(several_files_are_one) {
  BOOST_TEST(unpacked(packed("one") + packed("two")).first == "onetwo");
}

BOOST_AUTO_TEST_CASE(what_follows_is_left_alone) {
  BOOST_TEST((unpacked(packed("one") + "padding") == std::pair(std::string("one"), std::string())));
}

BOOST_AUTO_TEST_CASE(a_cut_keeps_what_came_before) {
  const std::string bytes = packed("a text that is long enough to be cut");
  const auto [text, damage] = unpacked(std::string_view(bytes).substr(0, bytes.size() - 4));
  BOOST_TEST(text == "a text that is long enough to be cut");
  BOOST_TEST(damage == "the gzip data is cut off");
}

BOOST_AUTO_TEST_CASE(a_cut_within_a_long_repetition_keeps_all_of_it) {
  // Found by fuzzing: 17 bytes that hold 242 zeros.  The reader returned only those up to the end
  // of a buffer.
  const std::string bytes("\x1f\x8b\x08\0\0\0\0\0\0\x03\x63\x60\x18\x01\0\x05\0", 17);
  const auto [text, damage] = unpacked(bytes);
  BOOST_TEST(text.size() == 242);
  BOOST_TEST(damage == "the gzip data is cut off");
}

BOOST_AUTO_TEST_CASE(damage_is_said) {
  std::string bytes = packed(kManyLetters);
  bytes[bytes.size() - 6] ^= 1;  // in the checksum
  BOOST_TEST(unpacked(bytes).second == "the gzip data is damaged");
  // Found by fuzzing: 20 bytes; zlib has consumed all of them when it detects the damage.
  const std::string short_one("\x1f\x8b\x08\0\0;;;;;;;;~;\x06\x04\x1f\x8b\xd2", 20);
  pe::Input input = pe::testing::memory_input(short_one);
  pe::GzipReader gzip(input);
  std::byte buffer[21];
  while (gzip.read(buffer) > 0) {
  }
  BOOST_TEST(gzip.damage() == "the gzip data is damaged");
  BOOST_TEST(unpacked("\x1f\x8b garbage").second == "the gzip data is damaged");
}

BOOST_AUTO_TEST_CASE(only_its_magic_is_gzip) {
  const auto is_gzip = [](std::string_view text) {
    return pe::is_gzip(std::as_bytes(std::span(text)));
  };
  BOOST_TEST(is_gzip(packed("")));
  BOOST_TEST(!is_gzip("\x1f"));
  BOOST_TEST(!is_gzip("PK"));
}

BOOST_AUTO_TEST_SUITE_END()

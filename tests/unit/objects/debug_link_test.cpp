// SPDX-License-Identifier: MIT
#include "objects/debug_file.h"

#include <boost/test/unit_test.hpp>

#include <string>

namespace {

using namespace std::string_literals;

pe::Bytes bytes(const std::string& text) { return std::as_bytes(std::span(text)); }

}  // namespace

BOOST_AUTO_TEST_SUITE(debug_link)

BOOST_AUTO_TEST_CASE(a_link_is_a_name_padded_to_four_and_a_crc) {
  for (const auto& section : {"abc\0\1\2\3\4"s, "abcd\0\0\0\0\1\2\3\4"s, "a\0\0\0\1\2\3\4more"s}) {
    const auto link = pe::objects::parse_debug_link(bytes(section));
    BOOST_TEST_REQUIRE(link.has_value());
    BOOST_TEST(link->file == section.c_str());
    BOOST_TEST(link->crc == 0x04030201U);
  }
}

BOOST_AUTO_TEST_CASE(a_link_that_leads_out_of_its_folder_is_none) {
  for (const auto& name : {"../a"s, "/etc/a"s, "a/b"s, "."s, ".."s, ""s, std::string(256, 'a')}) {
    std::string section = name + '\0';
    section.resize((section.size() + 3) / 4 * 4);
    BOOST_TEST(!pe::objects::parse_debug_link(bytes(section + "\1\2\3\4")), name);
  }
}

BOOST_AUTO_TEST_CASE(a_link_that_is_cut_off_is_none) {
  for (const auto& section : {""s, "abc"s, "abc\0"s, "abc\0\1\2\3"s, "abcd\0\1\2\3\4"s})
    BOOST_TEST(!pe::objects::parse_debug_link(bytes(section)));
}

BOOST_AUTO_TEST_CASE(an_alternate_link_is_a_path_and_a_build_id) {
  const auto link = pe::objects::parse_alt_link(bytes("../x/a.dwz\0\xab\xcd\x01"s));
  BOOST_TEST_REQUIRE(link.has_value());
  BOOST_TEST(link->path == "../x/a.dwz");
  BOOST_TEST(pe::objects::hex(link->build_id) == "abcd01");
}

BOOST_AUTO_TEST_CASE(an_alternate_link_without_path_or_build_id_is_none) {
  for (const auto& section : {""s, "abc"s, "abc\0"s, "abc\0a"s, "\0abcd"s,
                              "abc\0"s + std::string(65, 'i'), std::string(4096, 'p') + "\0abcd"s})
    BOOST_TEST(!pe::objects::parse_alt_link(bytes(section)));
}

BOOST_AUTO_TEST_SUITE_END()

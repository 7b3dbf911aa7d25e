// SPDX-License-Identifier: MIT
#include "names/dwarf/inlines.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>
#include <boost/test/unit_test.hpp>

#include <cstring>
#include <random>

#include "base/text.h"
#include "objects/compressed.h"
#include "support/binary_symbols.h"
#include "support/test_binary.h"

using pe::names::Inlines;
using pe::objects::Image;
using pe::testing::bytes_of_file;
using pe::testing::symbol_of;
using pe::testing::test_binary;

namespace {

Image test_image(std::string_view name) { return pe::testing::image_of(test_binary(name)); }

/// The frames of an address: "innermost@inlined.cpp:8 ...".
std::string text(Inlines& inlines, std::uint64_t svma) {
  std::string all;
  for (const auto& frame : inlines.at(svma))
    all += fmt::format("{}@{}:{} ", frame.linkage_name.empty() ? frame.name : frame.linkage_name,
                       pe::file_name(frame.file), frame.line);
  return all;
}

/// True if some address of the function has the frames `wanted`.
bool has_address(const Image& image, std::string_view function, std::string_view wanted) {
  Inlines inlines(image);
  const auto found = symbol_of(image, function);
  for (std::uint64_t svma = found.svma; svma < found.svma + found.bytes; ++svma)
    if (text(inlines, svma) == wanted)
      return true;
  return false;
}

/// Looks up addresses in all of the code; false if the image could not be opened.
bool look_around(const std::vector<std::byte>& bytes) {
  pe::Fd fd(::memfd_create("image", MFD_CLOEXEC));
  BOOST_REQUIRE(::write(fd.get(), bytes.data(), bytes.size()) ==
                static_cast<ssize_t>(bytes.size()));
  const auto opened = Image::open(std::move(fd));
  const auto* image = std::get_if<Image>(&opened);
  if (image == nullptr)
    return false;
  Inlines inlines(*image);
  for (const auto& section : image->sections())
    for (std::uint64_t i = 0; section.is_code() && i < std::min<std::uint64_t>(section.bytes, 512);
         i += 8)
      BOOST_REQUIRE(inlines.at(section.svma + i).size() <= Inlines::kMaxDepth + 1);
  return true;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(inlines)

BOOST_AUTO_TEST_CASE(inlined_functions_come_innermost_first_with_their_lines) {
  for (const char* program : {"inlined", "inlined_pie"})
    BOOST_TEST(has_address(
        test_image(program), "_ZN3box5outerEi",
        "(anonymous namespace)::innermost@inlined.cpp:8 _ZNK3box3Box6middleEi@inlined.cpp:19 "
        "_ZN3box5outerEi@inlined.cpp:25 "));
}

BOOST_AUTO_TEST_CASE(functions_without_linkage_name_are_called_with_what_they_stand_in) {
  const std::string in_lambda = "box::inner::(anonymous namespace)::in_lambda";
  const std::string symbol = "_ZN3box5inner12_GLOBAL__N_19in_lambdaEi";
  for (const char* program : {"inlined", "inlined_pie"}) {
    BOOST_TEST(
        has_address(test_image(program), symbol,
                    "box::inner::(anonymous namespace)::Local::Deeper::in_class@inlined.cpp:41 " +
                        in_lambda + "@inlined.cpp:52 "));
    BOOST_TEST(has_address(
        test_image(program), symbol,
        in_lambda + "::{lambda}::operator()@inlined.cpp:49 " + in_lambda + "@inlined.cpp:52 "));
  }
}

BOOST_AUTO_TEST_CASE(a_function_with_nothing_inlined_is_alone_with_its_line) {
  BOOST_TEST(has_address(test_image("inlined"), "plain", "plain@inlined.cpp:31 "));
}

BOOST_AUTO_TEST_CASE(addresses_without_debug_information_have_no_frames) {
  const Image image = test_image("inlined");
  Inlines inlines(image);
  BOOST_TEST(!inlines.is_empty());
  BOOST_TEST(inlines.at(symbol_of(image, "_start").svma).empty());
  BOOST_TEST(inlines.at(0).empty());
  BOOST_TEST(inlines.at(~std::uint64_t{0}).empty());
  BOOST_TEST(Inlines(test_image("functions_stripped.so")).is_empty());
}

BOOST_AUTO_TEST_CASE(the_file_is_not_needed_once_it_is_read) {
  Image image = test_image("inlined");
  const auto plain = symbol_of(image, "plain");
  Inlines inlines(image);
  image.close_file();
  BOOST_TEST(text(inlines, plain.svma).starts_with("plain@inlined.cpp:"));
}

BOOST_AUTO_TEST_CASE(compressed_debug_information_is_read) {
  BOOST_TEST(has_address(test_image("inlined_compressed"), "plain", "plain@inlined.cpp:31 "));
}

BOOST_AUTO_TEST_CASE(a_compressed_section_that_claims_too_much_is_not_read) {
  auto bytes = bytes_of_file(test_binary("inlined_compressed"));
  const Image whole = test_image("inlined_compressed");
  const auto* info = whole.section(".debug_info");
  BOOST_TEST_REQUIRE(info != nullptr);
  constexpr std::size_t kSizeInHeader = 8;  // Elf64_Chdr: type, reserved, size
  for (const std::uint64_t claim : {std::uint64_t{1} << 40, ~std::uint64_t{0}}) {
    std::memcpy(bytes.data() + info->file_offset + kSizeInHeader, &claim, sizeof claim);
    const auto opened = Image::from_memory(bytes);
    const auto& image = std::get<Image>(opened);
    BOOST_TEST(!pe::objects::uncompressed_bytes(image, *image.section(".debug_info")).has_value());
    BOOST_TEST(Inlines(image).is_empty());
  }
}

BOOST_AUTO_TEST_CASE(damaged_debug_information_is_survived) {
  const auto whole = bytes_of_file(test_binary("inlined"));
  const Image image = test_image("inlined");
  std::mt19937 random(1);  // NOLINT(cert-msc51-cpp): the same at every run
  std::size_t opened = 0;
  for (const char* name : {".debug_info", ".debug_abbrev", ".debug_line", ".debug_rnglists"}) {
    const auto* section = image.section(name);
    BOOST_TEST_REQUIRE(section != nullptr, name);
    for (int round = 0; round < 40; ++round) {
      auto bytes = whole;
      for (int i = 0; i < 5; ++i)
        bytes[section->file_offset + random() % section->bytes] =
            static_cast<std::byte>(random() % 256);
      opened += look_around(bytes) ? 1 : 0;
    }
  }
  BOOST_TEST(opened == 160U);
}

BOOST_AUTO_TEST_SUITE_END()
